//! Dates in a text. No clock is used: `tomorrow` becomes a date only if the text states today's date.

use jiff::{Span, civil};

use super::format::DateFormat;
use crate::text::{Text, TokenKind};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// A date, possibly without some of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Date {
    /// The year.
    pub(crate) year: Option<i32>,
    /// The month, 1 to 12.
    pub(crate) month: Option<u32>,
    /// The day of the month, 1 to 31.
    pub(crate) day: Option<u32>,
}

/// A date with its position in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateMention {
    /// The date; without parts if it is relative and today is unknown.
    pub(crate) date: Date,
    /// The first token.
    pub(crate) from: usize,
    /// The token after it.
    pub(crate) to: usize,
}

impl Date {
    /// Whether year, month and day are all known.
    pub(crate) fn is_whole(self) -> bool {
        self.year.is_some() && self.month.is_some() && self.day.is_some()
    }

    /// The date in a format. `None` if a part is unknown.
    pub(crate) fn written(self, format: &DateFormat) -> Option<String> {
        format.write(self)
    }

    fn checked(self) -> Option<Self> {
        let fits = self.month.is_none_or(|month| (1..=12).contains(&month))
            && self.day.is_none_or(|day| (1..=31).contains(&day))
            && self.year.is_none_or(|year| (1..=9999).contains(&year));
        fits.then_some(self)
    }

    /// The date some days later.
    fn plus(self, days: i64) -> Option<Self> {
        let later = self
            .civil()?
            .checked_add(Span::new().try_days(days).ok()?)
            .ok()?;
        Some(Self {
            year: Some(later.year().into()),
            month: u32::try_from(later.month()).ok(),
            day: u32::try_from(later.day()).ok(),
        })
    }

    /// The day of the week, 0 for Monday.
    fn weekday(self) -> Option<i64> {
        Some(self.civil()?.weekday().to_monday_zero_offset().into())
    }

    /// The day of the calendar. `None` if a part is unknown or there is no such day.
    fn civil(self) -> Option<civil::Date> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        let (year, month, day) = (
            year.try_into().ok()?,
            month.try_into().ok()?,
            day.try_into().ok()?,
        );
        civil::Date::new(year, month, day).ok()
    }
}

/// All dates of a text, in order. Relative dates are resolved with `today`.
pub(crate) fn dates(text: &Text, today: Option<Date>) -> Vec<DateMention> {
    let mut found: Vec<DateMention> = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let mention = numeric(text, at)
            .or_else(|| named_month(text, at))
            .or_else(|| relative(text, at, today));
        match mention {
            Some(mention) => {
                at = mention.to.max(at + 1);
                found.push(mention);
            }
            None => at += 1,
        }
    }
    copy_years(&mut found);
    found
}

/// Today's date as the text states it: `Today is 2024-05-01`, `Current date: May 1, 2024`.
pub(crate) fn stated_today(text: &str) -> Option<Date> {
    let lower = text.to_lowercase();
    for cue in [
        "today is",
        "today's date is",
        "today's date:",
        "current date is",
        "current date:",
        "date today is",
        "today:",
    ] {
        for (start, _) in lower.match_indices(cue) {
            let rest = lower.get(start + cue.len()..).unwrap_or("");
            let rest = Text::new(crate::text::beginning(rest, 60));
            let whole = dates(&rest, None)
                .into_iter()
                .find(|mention| mention.date.is_whole() && mention.from <= 4);
            if let Some(mention) = whole {
                return Some(mention.date);
            }
        }
    }
    None
}

/// Gives dates without a year the year of their neighbour: `from July 10 to July 20, 2022`.
fn copy_years(found: &mut [DateMention]) {
    for index in 0..found.len() {
        let date = found[index].date;
        if date.year.is_none() && date.month.is_some() {
            let neighbour = [index + 1, index.wrapping_sub(1)]
                .into_iter()
                .find_map(|other| found.get(other).and_then(|mention| mention.date.year));
            found[index].date.year = neighbour;
        }
    }
}

fn number(text: &Text, at: usize) -> Option<u32> {
    let token = text.tokens.get(at)?;
    (token.kind == TokenKind::Number && token.lower.len() <= 4)
        .then(|| token.lower.parse().ok())
        .flatten()
}

/// `2022-08-16`, `8/16/2022`, `16.08.2022`, `2022-08`.
fn numeric(text: &Text, at: usize) -> Option<DateMention> {
    // `16.08.2022` is tokenized as the numbers 16.08 and 2022.
    if let Some(mention) = dotted(text, at) {
        return Some(mention);
    }
    let first = number(text, at)?;
    let tight = |index: usize| {
        text.tokens
            .get(index)
            .is_some_and(|token| !token.spaced && (token.is('-') || token.is('/')))
    };
    if !tight(at + 1) || text.tokens.get(at + 2).is_none_or(|token| token.spaced) {
        return None;
    }
    let second = number(text, at + 2)?;
    let separator = text.lower(at + 1);
    let third = (tight(at + 3) && text.lower(at + 3) == separator)
        .then(|| number(text, at + 4))
        .flatten();
    let width = |index: usize| text.lower(index).len();
    let (date, to) = match third {
        Some(third) if width(at) == 4 => (ymd(first, second, third), at + 5),
        Some(third) if width(at + 4) == 4 || width(at + 4) == 2 => {
            let year = if width(at + 4) == 2 {
                2000 + third
            } else {
                third
            };
            // 13 and above can only be a day. Otherwise the month is first, as most tools expect.
            let date = if first > 12 {
                ymd(year, second, first)
            } else {
                ymd(year, first, second)
            };
            (date, at + 5)
        }
        None if width(at) == 4 && width(at + 2) == 2 && second <= 12 && separator == "-" => (
            Date {
                year: i32::try_from(first).ok(),
                month: Some(second),
                day: None,
            },
            at + 3,
        ),
        None if width(at + 2) == 4 && first <= 12 && (1500..2200).contains(&second) => (
            Date {
                year: i32::try_from(second).ok(),
                month: Some(first),
                day: None,
            },
            at + 3,
        ),
        _ => return None,
    };
    Some(DateMention {
        date: date.checked()?,
        from: at,
        to,
    })
}

fn dotted(text: &Text, at: usize) -> Option<DateMention> {
    let token = text.tokens.get(at)?;
    let (day, month) = token.lower.split_once('.')?;
    if token.kind != TokenKind::Number || day.len() > 2 || month.len() > 2 {
        return None;
    }
    let point = text.tokens.get(at + 1)?;
    let year = number(text, at + 2).filter(|year| *year > 1000)?;
    let tight = point.is('.') && !point.spaced && !text.tokens[at + 2].spaced;
    let date = ymd(year, month.parse().ok()?, day.parse().ok()?).checked()?;
    tight.then_some(DateMention {
        date,
        from: at,
        to: at + 3,
    })
}

fn ymd(year: u32, month: u32, day: u32) -> Date {
    Date {
        year: i32::try_from(year).ok(),
        month: Some(month),
        day: Some(day),
    }
}

/// The number of the month a word names.
pub(crate) fn month(lower: &str) -> Option<u32> {
    let index = MONTHS.iter().position(|month| {
        *month == lower || lower.len() >= 3 && lower.len() <= 4 && month.starts_with(lower)
    })?;
    u32::try_from(index + 1).ok()
}

/// The name of a month, capitalised.
pub(crate) fn month_name(month: u32) -> &'static str {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    NAMES
        .get(month.saturating_sub(1) as usize)
        .copied()
        .unwrap_or("")
}

/// `March 10th, 2023`, `10th of December 2022`, `April 2022`, `December`.
fn named_month(text: &Text, at: usize) -> Option<DateMention> {
    let day_at = |index: usize| -> Option<(u32, usize)> {
        let day = number(text, index).filter(|day| (1..=31).contains(day))?;
        let suffix = text.tokens.get(index + 1).is_some_and(|token| {
            !token.spaced && matches!(token.lower.as_str(), "st" | "nd" | "rd" | "th")
        });
        Some((day, index + 1 + usize::from(suffix)))
    };
    let year_at = |index: usize| -> Option<(i32, usize)> {
        let skip = usize::from(matches!(text.lower(index), "," | "of" | "." | "'"));
        let year = number(text, index + skip).filter(|_| text.lower(index + skip).len() == 4)?;
        Some((i32::try_from(year).ok()?, index + skip + 1))
    };
    let with_year = |day: Option<u32>, month: u32, to: usize| {
        let (year, to) = year_at(to).map_or((None, to), |(year, to)| (Some(year), to));
        Some(DateMention {
            date: Date {
                year,
                month: Some(month),
                day,
            },
            from: at,
            to,
        })
    };
    if let Some((day, next)) = day_at(at) {
        let next = next + usize::from(matches!(text.lower(next), "of" | "-"));
        let month = month_at(text, next)?;
        return with_year(Some(day), month, next + 1);
    }
    let month = month_at(text, at)?;
    let mut next = at + 1;
    while matches!(text.lower(next), "." | "the" | "-") {
        next += 1;
    }
    match day_at(next) {
        Some((day, to)) => with_year(Some(day), month, to),
        None => with_year(None, month, at + 1),
    }
}

/// The month at a token. `may` and `march` need a capital, because they are also ordinary words.
fn month_at(text: &Text, at: usize) -> Option<u32> {
    let token = text.tokens.get(at)?;
    let doubtful = matches!(
        token.lower.as_str(),
        "may" | "march" | "mar" | "dec" | "sept" | "sep" | "jan"
    );
    month(&token.lower).filter(|_| !doubtful || token.capital)
}

/// `tomorrow`, `next Monday`, `last week`, `in 3 days`.
fn relative(text: &Text, at: usize, today: Option<Date>) -> Option<DateMention> {
    let word = text.lower(at);
    let mention = |date: Option<Date>, to: usize| {
        Some(DateMention {
            date: date.unwrap_or_default(),
            from: at,
            to,
        })
    };
    let shifted = |days: i64| today.and_then(|today| today.plus(days));
    match word {
        "today" | "tonight" => mention(shifted(0), at + 1),
        "tomorrow" => mention(shifted(1), at + 1),
        "yesterday" => mention(shifted(-1), at + 1),
        "next" | "last" | "this" | "coming" | "upcoming" | "past" => {
            let unit = text.lower(at + 1);
            if let Some(wanted) = weekday(unit) {
                let date = today.and_then(|today| {
                    let ahead = (wanted - today.weekday()?).rem_euclid(7);
                    let days = match word {
                        "last" | "past" => ahead - 7,
                        "next" if ahead == 0 => 7,
                        _ => ahead,
                    };
                    today.plus(days)
                });
                return mention(date, at + 2);
            }
            matches!(
                unit,
                "week"
                    | "month"
                    | "year"
                    | "weekend"
                    | "quarter"
                    | "summer"
                    | "winter"
                    | "spring"
                    | "fall"
                    | "autumn"
            )
            .then(|| mention(None, at + 2))
            .flatten()
        }
        "in" if number(text, at + 1).is_some()
            && matches!(text.lower(at + 2), "days" | "day" | "weeks" | "week") =>
        {
            today?;
            let count = i64::from(number(text, at + 1)?);
            let each = if text.lower(at + 2).starts_with("week") {
                7
            } else {
                1
            };
            mention(shifted(count * each), at + 3)
        }
        _ => None,
    }
}

/// The number of a weekday, 0 for Monday.
pub(crate) fn weekday(lower: &str) -> Option<i64> {
    let index = WEEKDAYS.iter().position(|day| *day == lower)?;
    i64::try_from(index).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Vec<(i32, u32, u32)> {
        dates(&Text::new(text), None)
            .iter()
            .filter(|mention| mention.date.is_whole())
            .map(|mention| {
                let date = mention.date;
                (date.year.unwrap(), date.month.unwrap(), date.day.unwrap())
            })
            .collect()
    }

    #[test]
    fn dates_are_read_in_the_usual_forms() {
        for text in [
            "on 2023-03-10.",
            "on 2023/03/10",
            "March 10th, 2023",
            "10th of March 2023",
            "Mar. 10, 2023",
            "03/10/2023",
            "10.03.2023",
            "10 March 2023",
        ] {
            assert_eq!(whole(text), [(2023, 3, 10)], "{text}");
        }
    }

    #[test]
    fn both_dates_of_a_range_get_its_year() {
        assert_eq!(
            whole("from July 10 to July 20, 2022"),
            [(2022, 7, 10), (2022, 7, 20)]
        );
    }

    #[test]
    fn relative_dates_need_a_stated_today() {
        let today = stated_today("You help. Today is 2024-02-28, a Wednesday.");
        assert_eq!(today, Some(ymd(2024, 2, 28)));
        let found = dates(&Text::new("meet tomorrow or next Friday"), today);
        assert_eq!(found[0].date, ymd(2024, 2, 29));
        assert_eq!(found[1].date, ymd(2024, 3, 1));
        assert!(!dates(&Text::new("tomorrow"), None)[0].date.is_whole());
    }

    #[test]
    fn ordinary_words_are_not_read_as_months() {
        assert!(dates(&Text::new("you may march there"), None).is_empty());
    }
}
