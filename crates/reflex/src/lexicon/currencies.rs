//! Currencies by name, sign and code.

/// (code, spellings in lower case).
const CURRENCIES: &[(&str, &[&str])] = &[
    (
        "USD",
        &[
            "us dollar",
            "us dollars",
            "u.s. dollars",
            "american dollar",
            "american dollars",
            "united states dollar",
            "united states dollars",
            "usd",
            "dollar",
            "dollars",
            "$",
            "us$",
            "bucks",
        ],
    ),
    ("EUR", &["euro", "euros", "eur", "€"]),
    (
        "GBP",
        &[
            "british pound",
            "british pounds",
            "pound sterling",
            "pounds sterling",
            "gbp",
            "£",
            "sterling",
            "quid",
        ],
    ),
    ("JPY", &["japanese yen", "yen", "jpy", "¥"]),
    ("CNY", &["chinese yuan", "yuan", "renminbi", "rmb", "cny"]),
    (
        "INR",
        &[
            "indian rupee",
            "indian rupees",
            "rupee",
            "rupees",
            "inr",
            "₹",
        ],
    ),
    ("CAD", &["canadian dollar", "canadian dollars", "cad", "c$"]),
    (
        "AUD",
        &["australian dollar", "australian dollars", "aud", "a$"],
    ),
    ("NZD", &["new zealand dollar", "new zealand dollars", "nzd"]),
    ("SGD", &["singapore dollar", "singapore dollars", "sgd"]),
    ("HKD", &["hong kong dollar", "hong kong dollars", "hkd"]),
    (
        "TWD",
        &[
            "taiwan dollar",
            "taiwan dollars",
            "new taiwan dollar",
            "new taiwan dollars",
            "twd",
        ],
    ),
    (
        "CHF",
        &["swiss franc", "swiss francs", "franc", "francs", "chf"],
    ),
    ("SEK", &["swedish krona", "swedish kronor", "sek"]),
    ("NOK", &["norwegian krone", "norwegian kroner", "nok"]),
    ("DKK", &["danish krone", "danish kroner", "dkk"]),
    ("PLN", &["polish zloty", "polish zlotys", "zloty", "pln"]),
    ("CZK", &["czech koruna", "czech korunas", "czk"]),
    ("HUF", &["hungarian forint", "forint", "huf"]),
    (
        "RUB",
        &[
            "russian ruble",
            "russian rubles",
            "ruble",
            "rubles",
            "rub",
            "₽",
        ],
    ),
    ("TRY", &["turkish lira", "lira", "try", "₺"]),
    (
        "BRL",
        &["brazilian real", "brazilian reais", "reais", "brl"],
    ),
    ("MXN", &["mexican peso", "mexican pesos", "mxn"]),
    ("ARS", &["argentine peso", "argentine pesos", "ars"]),
    ("ZAR", &["south african rand", "rand", "zar"]),
    ("KRW", &["south korean won", "korean won", "krw", "₩"]),
    ("THB", &["thai baht", "baht", "thb"]),
    ("IDR", &["indonesian rupiah", "rupiah", "idr"]),
    ("MYR", &["malaysian ringgit", "ringgit", "myr"]),
    ("PHP", &["philippine peso", "philippine pesos", "php"]),
    ("VND", &["vietnamese dong", "dong", "vnd"]),
    (
        "ILS",
        &[
            "israeli shekel",
            "israeli shekels",
            "shekel",
            "shekels",
            "ils",
        ],
    ),
    ("AED", &["uae dirham", "dirham", "dirhams", "aed"]),
    ("SAR", &["saudi riyal", "riyal", "riyals", "sar"]),
    ("EGP", &["egyptian pound", "egyptian pounds", "egp"]),
    ("NGN", &["nigerian naira", "naira", "ngn"]),
    ("KES", &["kenyan shilling", "kenyan shillings", "kes"]),
    ("BTC", &["bitcoin", "bitcoins", "btc"]),
    ("ETH", &["ethereum", "ether", "eth"]),
];

/// The code of the currency with this spelling.
pub(crate) fn code(spelling: &str) -> Option<&'static str> {
    let lower = spelling.trim().to_lowercase();
    CURRENCIES
        .iter()
        .find(|(_, spellings)| spellings.contains(&lower.as_str()))
        .map(|(code, _)| *code)
}

/// Whether a character is a sign of a currency.
pub(crate) fn is_sign(character: char) -> bool {
    matches!(character, '$' | '€' | '£' | '¥' | '₹' | '₽' | '₺' | '₩')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currencies_are_known_by_name_sign_and_code() {
        assert_eq!(code("British Pounds"), Some("GBP"));
        assert_eq!(code("€"), Some("EUR"));
        assert_eq!(code("cad"), Some("CAD"));
        assert_eq!(code("kilograms"), None);
    }
}
