//! Well-known places: states, countries, and large cities with their state or country, so that `Chicago`
//! can be written as `Chicago, IL` where a tool asks for city and state.

/// States of the United States and their codes.
#[rustfmt::skip] // A table, read across.
const STATES: [(&str, &str); 51] = [
    ("Alabama", "AL"), ("Alaska", "AK"), ("Arizona", "AZ"), ("Arkansas", "AR"),
    ("California", "CA"), ("Colorado", "CO"), ("Connecticut", "CT"), ("Delaware", "DE"),
    ("Florida", "FL"), ("Georgia", "GA"), ("Hawaii", "HI"), ("Idaho", "ID"), ("Illinois", "IL"),
    ("Indiana", "IN"), ("Iowa", "IA"), ("Kansas", "KS"), ("Kentucky", "KY"),
    ("Louisiana", "LA"), ("Maine", "ME"), ("Maryland", "MD"), ("Massachusetts", "MA"),
    ("Michigan", "MI"), ("Minnesota", "MN"), ("Mississippi", "MS"), ("Missouri", "MO"),
    ("Montana", "MT"), ("Nebraska", "NE"), ("Nevada", "NV"), ("New Hampshire", "NH"),
    ("New Jersey", "NJ"), ("New Mexico", "NM"), ("New York", "NY"), ("North Carolina", "NC"),
    ("North Dakota", "ND"), ("Ohio", "OH"), ("Oklahoma", "OK"), ("Oregon", "OR"),
    ("Pennsylvania", "PA"), ("Rhode Island", "RI"), ("South Carolina", "SC"),
    ("South Dakota", "SD"), ("Tennessee", "TN"), ("Texas", "TX"), ("Utah", "UT"),
    ("Vermont", "VT"), ("Virginia", "VA"), ("Washington", "WA"), ("West Virginia", "WV"),
    ("Wisconsin", "WI"), ("Wyoming", "WY"), ("District of Columbia", "DC"),
];

/// Cities of the United States and the code of their state.
#[rustfmt::skip] // A table, read across.
const AMERICAN_CITIES: &[(&str, &str)] = &[
    ("New York", "NY"), ("New York City", "NY"), ("Los Angeles", "CA"), ("Chicago", "IL"),
    ("Houston", "TX"), ("Phoenix", "AZ"), ("Philadelphia", "PA"), ("San Antonio", "TX"),
    ("San Diego", "CA"), ("Dallas", "TX"), ("San Jose", "CA"), ("Austin", "TX"),
    ("Jacksonville", "FL"), ("Fort Worth", "TX"), ("Columbus", "OH"), ("Charlotte", "NC"),
    ("Indianapolis", "IN"), ("San Francisco", "CA"), ("Seattle", "WA"), ("Denver", "CO"),
    ("Oklahoma City", "OK"), ("Nashville", "TN"), ("El Paso", "TX"), ("Washington D.C.", "DC"),
    ("Washington DC", "DC"), ("Boston", "MA"), ("Las Vegas", "NV"), ("Detroit", "MI"),
    ("Portland", "OR"), ("Louisville", "KY"), ("Memphis", "TN"), ("Baltimore", "MD"),
    ("Milwaukee", "WI"), ("Albuquerque", "NM"), ("Tucson", "AZ"), ("Fresno", "CA"),
    ("Sacramento", "CA"), ("Mesa", "AZ"), ("Kansas City", "MO"), ("Atlanta", "GA"),
    ("Omaha", "NE"), ("Colorado Springs", "CO"), ("Raleigh", "NC"), ("Long Beach", "CA"),
    ("Virginia Beach", "VA"), ("Miami", "FL"), ("Oakland", "CA"), ("Minneapolis", "MN"),
    ("Tulsa", "OK"), ("Tampa", "FL"), ("Arlington", "TX"), ("New Orleans", "LA"),
    ("Wichita", "KS"), ("Cleveland", "OH"), ("Bakersfield", "CA"), ("Honolulu", "HI"),
    ("Anaheim", "CA"), ("Santa Ana", "CA"), ("Riverside", "CA"), ("Corpus Christi", "TX"),
    ("Lexington", "KY"), ("Stockton", "CA"), ("Saint Paul", "MN"), ("St. Paul", "MN"),
    ("Cincinnati", "OH"), ("St. Louis", "MO"), ("Pittsburgh", "PA"), ("Greensboro", "NC"),
    ("Anchorage", "AK"), ("Plano", "TX"), ("Lincoln", "NE"), ("Orlando", "FL"),
    ("Irvine", "CA"), ("Newark", "NJ"), ("Durham", "NC"), ("Chula Vista", "CA"),
    ("Toledo", "OH"), ("Fort Wayne", "IN"), ("Laredo", "TX"), ("Jersey City", "NJ"),
    ("Chandler", "AZ"), ("Madison", "WI"), ("Lubbock", "TX"), ("Scottsdale", "AZ"),
    ("Reno", "NV"), ("Buffalo", "NY"), ("Gilbert", "AZ"), ("Glendale", "AZ"),
    ("Winston-Salem", "NC"), ("Chesapeake", "VA"), ("Norfolk", "VA"), ("Fremont", "CA"),
    ("Richmond", "VA"), ("Boise", "ID"), ("Spokane", "WA"), ("Baton Rouge", "LA"),
    ("Tacoma", "WA"), ("San Bernardino", "CA"), ("Modesto", "CA"), ("Fontana", "CA"),
    ("Des Moines", "IA"), ("Santa Clarita", "CA"), ("Salt Lake City", "UT"),
    ("Huntsville", "AL"), ("Birmingham", "AL"), ("Rochester", "NY"), ("Tallahassee", "FL"),
    ("Providence", "RI"), ("Knoxville", "TN"), ("Berkeley", "CA"), ("Palo Alto", "CA"),
    ("Mountain View", "CA"), ("Santa Rosa", "CA"), ("Cupertino", "CA"), ("Pasadena", "CA"),
    ("Santa Monica", "CA"), ("Santa Clara", "CA"), ("Sunnyvale", "CA"), ("Oceanside", "CA"),
    ("Hayward", "CA"), ("Walnut Creek", "CA"), ("Livermore", "CA"), ("Concord", "CA"),
    ("San Mateo", "CA"), ("Redwood City", "CA"), ("San Ramon", "CA"), ("Napa", "CA"),
    ("Fort Lauderdale", "FL"), ("Cambridge", "MA"), ("Worcester", "MA"), ("Ann Arbor", "MI"),
    ("Boulder", "CO"), ("Eugene", "OR"), ("Salem", "OR"), ("Hartford", "CT"),
    ("New Haven", "CT"), ("Albany", "NY"), ("Syracuse", "NY"), ("Manhattan", "NY"),
    ("Brooklyn", "NY"), ("Queens", "NY"), ("Savannah", "GA"), ("Charleston", "SC"),
    ("Santa Fe", "NM"), ("Key West", "FL"), ("Philly", "PA"), ("Chattanooga", "TN"),
];

/// Large cities elsewhere and their country.
#[rustfmt::skip] // A table, read across.
const WORLD_CITIES: &[(&str, &str)] = &[
    ("London", "UK"), ("Manchester", "UK"), ("Liverpool", "UK"), ("Edinburgh", "UK"),
    ("Glasgow", "UK"), ("Oxford", "UK"), ("Paris", "France"), ("Lyon", "France"),
    ("Marseille", "France"), ("Nice", "France"), ("Berlin", "Germany"), ("Munich", "Germany"),
    ("Hamburg", "Germany"), ("Frankfurt", "Germany"), ("Cologne", "Germany"), ("Rome", "Italy"),
    ("Milan", "Italy"), ("Venice", "Italy"), ("Florence", "Italy"), ("Naples", "Italy"),
    ("Madrid", "Spain"), ("Barcelona", "Spain"), ("Seville", "Spain"), ("Valencia", "Spain"),
    ("Lisbon", "Portugal"), ("Porto", "Portugal"), ("Amsterdam", "Netherlands"),
    ("Rotterdam", "Netherlands"), ("Brussels", "Belgium"), ("Vienna", "Austria"),
    ("Zurich", "Switzerland"), ("Geneva", "Switzerland"), ("Stockholm", "Sweden"),
    ("Oslo", "Norway"), ("Copenhagen", "Denmark"), ("Helsinki", "Finland"),
    ("Dublin", "Ireland"), ("Athens", "Greece"), ("Warsaw", "Poland"), ("Krakow", "Poland"),
    ("Prague", "Czech Republic"), ("Budapest", "Hungary"), ("Bucharest", "Romania"),
    ("Sofia", "Bulgaria"), ("Belgrade", "Serbia"), ("Zagreb", "Croatia"), ("Kyiv", "Ukraine"),
    ("Moscow", "Russia"), ("Saint Petersburg", "Russia"), ("Istanbul", "Turkey"),
    ("Ankara", "Turkey"), ("Tokyo", "Japan"), ("Osaka", "Japan"), ("Kyoto", "Japan"),
    ("Seoul", "South Korea"), ("Busan", "South Korea"), ("Beijing", "China"),
    ("Shanghai", "China"), ("Guangzhou", "China"), ("Shenzhen", "China"), ("Chengdu", "China"),
    ("Hong Kong", "China"), ("Taipei", "Taiwan"), ("Singapore", "Singapore"),
    ("Bangkok", "Thailand"), ("Phuket", "Thailand"), ("Hanoi", "Vietnam"),
    ("Ho Chi Minh City", "Vietnam"), ("Jakarta", "Indonesia"), ("Bali", "Indonesia"),
    ("Kuala Lumpur", "Malaysia"), ("Manila", "Philippines"), ("Delhi", "India"),
    ("New Delhi", "India"), ("Mumbai", "India"), ("Bangalore", "India"), ("Bengaluru", "India"),
    ("Chennai", "India"), ("Kolkata", "India"), ("Hyderabad", "India"), ("Pune", "India"),
    ("Karachi", "Pakistan"), ("Lahore", "Pakistan"), ("Dhaka", "Bangladesh"),
    ("Colombo", "Sri Lanka"), ("Kathmandu", "Nepal"), ("Dubai", "UAE"), ("Abu Dhabi", "UAE"),
    ("Doha", "Qatar"), ("Riyadh", "Saudi Arabia"), ("Tel Aviv", "Israel"),
    ("Jerusalem", "Israel"), ("Tehran", "Iran"), ("Baghdad", "Iraq"), ("Cairo", "Egypt"),
    ("Casablanca", "Morocco"), ("Marrakech", "Morocco"), ("Lagos", "Nigeria"),
    ("Nairobi", "Kenya"), ("Cape Town", "South Africa"), ("Johannesburg", "South Africa"),
    ("Accra", "Ghana"), ("Addis Ababa", "Ethiopia"), ("Sydney", "Australia"),
    ("Melbourne", "Australia"), ("Brisbane", "Australia"), ("Perth", "Australia"),
    ("Auckland", "New Zealand"), ("Wellington", "New Zealand"), ("Toronto", "Canada"),
    ("Vancouver", "Canada"), ("Montreal", "Canada"), ("Ottawa", "Canada"),
    ("Calgary", "Canada"), ("Mexico City", "Mexico"), ("Cancun", "Mexico"),
    ("Buenos Aires", "Argentina"), ("Rio de Janeiro", "Brazil"), ("Sao Paulo", "Brazil"),
    ("São Paulo", "Brazil"), ("Santiago", "Chile"), ("Lima", "Peru"), ("Bogota", "Colombia"),
    ("Bogotá", "Colombia"), ("Caracas", "Venezuela"), ("Havana", "Cuba"), ("Quito", "Ecuador"),
];

/// Countries and regions, with their two-letter codes.
#[rustfmt::skip] // A table, read across.
const COUNTRIES: &[(&str, &str)] = &[
    ("United States", "US"), ("United States of America", "US"), ("USA", "US"), ("US", "US"),
    ("U.S.", "US"), ("America", "US"), ("United Kingdom", "GB"), ("UK", "GB"),
    ("Great Britain", "GB"), ("England", "GB"), ("Scotland", "GB"), ("Wales", "GB"),
    ("Ireland", "IE"), ("France", "FR"), ("Germany", "DE"), ("Italy", "IT"), ("Spain", "ES"),
    ("Portugal", "PT"), ("Netherlands", "NL"), ("Belgium", "BE"), ("Luxembourg", "LU"),
    ("Switzerland", "CH"), ("Austria", "AT"), ("Sweden", "SE"), ("Norway", "NO"),
    ("Denmark", "DK"), ("Finland", "FI"), ("Iceland", "IS"), ("Poland", "PL"),
    ("Czech Republic", "CZ"), ("Slovakia", "SK"), ("Hungary", "HU"), ("Romania", "RO"),
    ("Bulgaria", "BG"), ("Greece", "GR"), ("Turkey", "TR"), ("Russia", "RU"), ("Ukraine", "UA"),
    ("Serbia", "RS"), ("Croatia", "HR"), ("China", "CN"), ("Japan", "JP"),
    ("South Korea", "KR"), ("North Korea", "KP"), ("Korea", "KR"), ("Taiwan", "TW"),
    ("India", "IN"), ("Pakistan", "PK"), ("Bangladesh", "BD"), ("Sri Lanka", "LK"),
    ("Nepal", "NP"), ("Thailand", "TH"), ("Vietnam", "VN"), ("Indonesia", "ID"),
    ("Malaysia", "MY"), ("Singapore", "SG"), ("Philippines", "PH"), ("Australia", "AU"),
    ("New Zealand", "NZ"), ("Canada", "CA"), ("Mexico", "MX"), ("Brazil", "BR"),
    ("Argentina", "AR"), ("Chile", "CL"), ("Peru", "PE"), ("Colombia", "CO"),
    ("Venezuela", "VE"), ("Ecuador", "EC"), ("Bolivia", "BO"), ("Cuba", "CU"), ("Egypt", "EG"),
    ("Morocco", "MA"), ("Algeria", "DZ"), ("Tunisia", "TN"), ("Nigeria", "NG"), ("Kenya", "KE"),
    ("Ethiopia", "ET"), ("Ghana", "GH"), ("South Africa", "ZA"), ("Israel", "IL"),
    ("Saudi Arabia", "SA"), ("Iran", "IR"), ("Iraq", "IQ"), ("Qatar", "QA"), ("UAE", "AE"),
    ("United Arab Emirates", "AE"), ("Europe", "EU"), ("Asia", "AS"), ("Africa", "AF"),
    ("North America", "NA"), ("South America", "SA"), ("Antarctica", "AQ"),
];

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// A street address, possibly with its city, state and country.
    Address,
    City,
    State,
    Country,
}

/// The kind of the place with this name. A name of both a city and a state is a city.
pub(crate) fn kind(name: &str) -> Option<PlaceKind> {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    if AMERICAN_CITIES
        .iter()
        .chain(WORLD_CITIES)
        .any(|(city, _)| is(city))
    {
        Some(PlaceKind::City)
    } else if STATES
        .iter()
        .any(|(state, code)| is(state) || *code == name)
    {
        Some(PlaceKind::State)
    } else if COUNTRIES
        .iter()
        .any(|(country, code)| is(country) || *code == name)
    {
        Some(PlaceKind::Country)
    } else {
        None
    }
}

/// The name of a place with its usual capitals.
pub(crate) fn capitalised(name: &str) -> &str {
    if name.chars().any(char::is_uppercase) {
        return name;
    }
    AMERICAN_CITIES
        .iter()
        .chain(WORLD_CITIES)
        .chain(&STATES)
        .chain(COUNTRIES)
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map_or(name, |(known, _)| known)
}

/// The code of the state of a city in the United States.
pub(crate) fn state_of(city: &str) -> Option<&'static str> {
    find(AMERICAN_CITIES, city)
}

/// The country of a city outside the United States.
pub(crate) fn country_of(city: &str) -> Option<&'static str> {
    find(WORLD_CITIES, city)
}

/// The code of a state.
pub(crate) fn state_code(state: &str) -> Option<&'static str> {
    find(&STATES, state)
}

/// The full name of a state, by its code.
pub(crate) fn state_name(code: &str) -> Option<&'static str> {
    STATES
        .iter()
        .find(|(_, known)| *known == code)
        .map(|(state, _)| *state)
}

/// The code of a country.
pub(crate) fn country_code(country: &str) -> Option<&'static str> {
    find(COUNTRIES, country)
}

fn find(list: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    list.iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, within)| *within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cities_have_their_state_or_country() {
        assert_eq!(state_of("chicago"), Some("IL"));
        assert_eq!(country_of("Tokyo"), Some("Japan"));
        assert_eq!(kind("New York"), Some(PlaceKind::City));
        assert_eq!(kind("CA"), Some(PlaceKind::State));
        assert_eq!(state_name("CA"), Some("California"));
        assert_eq!(kind("Middle-earth"), None);
    }
}
