//! The date format in the description of a parameter: `YYYY-MM-DD`, `month/day/year`, `%d.%m.%Y`, or an
//! example.

use std::fmt::Write as _;

use super::date::{Date, month_name};

/// One part of a written date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    Between(char),
}

/// The format of a written date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateFormat(Vec<Part>);

impl DateFormat {
    /// `2023-03-10`.
    pub(crate) fn iso() -> Self {
        use Part::{Between, Day, Month, Year};
        Self(vec![Year, Between('-'), Month, Between('-'), Day])
    }

    /// The format in a description, if it names one or shows a date.
    pub(crate) fn in_description(description: &str) -> Option<Self> {
        let characters: Vec<char> = crate::text::beginning(description, 600).chars().collect();
        let mut shown = None;
        for start in 0..characters.len() {
            let begins = start == 0 || !characters[start - 1].is_alphanumeric();
            if !begins {
                continue;
            }
            if let Some(format) = pattern(&characters[start..]) {
                return Some(format);
            }
            if shown.is_none() {
                shown = example(&characters[start..]);
            }
        }
        shown.or_else(|| description.contains("ISO 8601").then(Self::iso))
    }

    pub(super) fn write(&self, date: Date) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Year => write!(text, "{:04}", date.year?).ok()?,
                Part::ShortYear => write!(text, "{:02}", date.year? % 100).ok()?,
                Part::Month => write!(text, "{:02}", date.month?).ok()?,
                Part::MonthName => text.push_str(month_name(date.month?)),
                Part::Day => write!(text, "{:02}", date.day?).ok()?,
                Part::Between(between) => text.push(*between),
            }
        }
        Some(text)
    }
}

/// A pattern of letters: at least two of year, month and day.
fn pattern(characters: &[char]) -> Option<DateFormat> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some((part, length)) = letters(&characters[at..]) {
        parts.push(part);
        at += length;
        match characters.get(at) {
            Some(&between @ ('-' | '/' | '.' | ' ' | ','))
                if letters(&characters[at + 1..]).is_some() =>
            {
                parts.push(Part::Between(between));
                at += 1;
            }
            Some('Y' | 'y' | 'M' | 'm' | 'D' | 'd' | '%') => {}
            _ => break,
        }
    }
    // A time may follow after `T`.
    let ends = characters
        .get(at)
        .is_none_or(|next| !next.is_alphanumeric() || *next == 'T' || *next == 'H');
    let named = parts
        .iter()
        .filter(|part| !matches!(part, Part::Between(_)))
        .count();
    let has_year = parts
        .iter()
        .any(|part| matches!(part, Part::Year | Part::ShortYear));
    (ends && named >= 2 && has_year).then_some(DateFormat(parts))
}

fn letters(characters: &[char]) -> Option<(Part, usize)> {
    let first = characters.first()?;
    if *first == '%' {
        let part = match characters.get(1)? {
            'Y' => Part::Year,
            'y' => Part::ShortYear,
            'm' => Part::Month,
            'B' => Part::MonthName,
            'd' => Part::Day,
            _ => return None,
        };
        return Some((part, 2));
    }
    for (word, part) in [
        ("month", Part::Month),
        ("year", Part::Year),
        ("day", Part::Day),
    ] {
        let is = word
            .chars()
            .zip(characters)
            .all(|(letter, given)| given.to_ascii_lowercase() == letter);
        let next = characters.get(word.len());
        if is && characters.len() >= word.len() && next.is_none_or(|next| !next.is_alphanumeric()) {
            return Some((part, word.len()));
        }
    }
    let letter = first.to_ascii_lowercase();
    let run = characters
        .iter()
        .take_while(|given| given.to_ascii_lowercase() == letter)
        .count();
    match (letter, run) {
        // `YYY` is a common misspelling of `YYYY` in descriptions.
        ('y', 3 | 4) => Some((Part::Year, run)),
        ('y', 2) => Some((Part::ShortYear, run)),
        ('m', 2) => Some((Part::Month, run)),
        ('m', 4) => Some((Part::MonthName, run)),
        ('d', 2) => Some((Part::Day, run)),
        _ => None,
    }
}

/// A date shown as an example, `2023-05-01` or `05/31/2023`.
fn example(characters: &[char]) -> Option<DateFormat> {
    let mut groups: Vec<String> = vec![String::new()];
    let mut between = None;
    for &character in characters.iter().take(11) {
        match character {
            digit if digit.is_ascii_digit() => groups.last_mut()?.push(digit),
            '-' | '/' | '.' if between.is_none_or(|known| known == character) => {
                between = Some(character);
                groups.push(String::new());
            }
            _ => break,
        }
    }
    let between = Part::Between(between?);
    groups.retain(|group| !group.is_empty());
    let [first, second, third] = groups.as_slice() else {
        return None;
    };
    let order = match (first.len(), second.len(), third.len()) {
        (4, 2, 2) => [Part::Year, Part::Month, Part::Day],
        (2, 2, 4) if first.as_str() > "12" => [Part::Day, Part::Month, Part::Year],
        (2, 2, 4) => [Part::Month, Part::Day, Part::Year],
        _ => return None,
    };
    let [a, b, c] = order;
    Some(DateFormat(vec![a, between, b, between, c]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(description: &str) -> Option<String> {
        let date = Date {
            year: Some(2022),
            month: Some(8),
            day: Some(16),
        };
        DateFormat::in_description(description)?.write(date)
    }

    #[test]
    fn formats_are_read_from_descriptions() {
        for (description, expected) in [
            ("Format: yyyy-mm-dd.", "2022-08-16"),
            ("in the format of MM-DD-YYY.", "08-16-2022"),
            ("The date (month-day-year) you want", "08-16-2022"),
            ("Date in 'mm-yyyy' format", "08-2022"),
            ("DD/MM/YYYY", "16/08/2022"),
            ("strftime %d.%m.%Y", "16.08.2022"),
            ("e.g. 2023-05-01", "2022-08-16"),
            ("e.g. '31/05/2023'", "16/08/2022"),
            ("YYYY-MM-DDTHH:MM:SS", "2022-08-16"),
        ] {
            assert_eq!(
                written(description).as_deref(),
                Some(expected),
                "{description}"
            );
        }
    }

    #[test]
    fn descriptions_without_a_format_give_none() {
        for description in ["The day of the week", "The year in question", "A date", ""] {
            assert_eq!(written(description), None, "{description}");
        }
    }
}
