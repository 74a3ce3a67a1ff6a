//! Assesses what a URL discloses. Fetching a page only reads, unless the URL itself carries data to the
//! server. Disclosed data cannot be taken back.

use windlass_spec::RiskLevel;

use super::sources::shown;

/// The maximum length of a URL that is checked; a longer one carries data.
const MAX_URL: usize = 2048;
/// A longer value in a query is more than a search term or an id.
const LONG_VALUE: usize = 100;
/// A longer query is more than a few settings.
const LONG_QUERY: usize = 400;
/// A longer sequence of letters and digits without a break is encoded data.
const LONG_CODE: usize = 48;

/// A finding about an address, a text in a language, or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: RiskLevel,
    pub(super) what: String,
}

impl Finding {
    pub(super) fn new(level: RiskLevel, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { level, what }
    }

    /// Returns the graver of two findings.
    pub(super) fn worse(self, other: Self) -> Self {
        if other.level > self.level {
            other
        } else {
            self
        }
    }
}

/// Assesses what a URL discloses; `None` if the text is not a URL or carries no data.
pub(super) fn assess(text: &str) -> Option<Finding> {
    let text = text.trim_start();
    let scheme = text.get(..text.find(':').filter(|&end| end <= 12)?)?;
    let is = |names: &[&str]| names.iter().any(|name| scheme.eq_ignore_ascii_case(name));
    if is(&["javascript", "vbscript"]) {
        return Some(Finding::new(
            RiskLevel::Irreversible,
            "the address is a script",
        ));
    }
    if !is(&["http", "https", "ftp", "ws", "wss"]) {
        return None;
    }
    let rest = text[scheme.len() + 1..].strip_prefix("//")?;
    // Prose that starts with a URL is not a URL.
    let rest = rest.split_whitespace().next().unwrap_or_default();
    if rest.len() > MAX_URL {
        let what = format!("the address is {} bytes long", rest.len());
        return Some(Finding::new(RiskLevel::ReversibleWithDelay, what));
    }
    let authority_end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(authority_end);
    if let Some((user, _)) = authority.rsplit_once('@')
        && user.contains(':')
    {
        let what = "the address carries a password";
        return Some(Finding::new(RiskLevel::Irreversible, what));
    }
    if authority.split('.').any(|label| label.len() > LONG_CODE) {
        let what = "the host name carries data";
        return Some(Finding::new(RiskLevel::ReversibleWithDelay, what));
    }
    let path_end = path_and_query
        .find(['?', '#'])
        .unwrap_or(path_and_query.len());
    let (path, query) = path_and_query.split_at(path_end);
    if path.split('/').any(is_encoded) {
        let what = "the path of the address carries data";
        return Some(Finding::new(RiskLevel::ReversibleWithDelay, what));
    }
    assess_query(query)
}

fn assess_query(query: &str) -> Option<Finding> {
    let worst = query
        .split(['?', '&', ';', '#'])
        .filter(|part| !part.is_empty())
        .filter_map(assess_parameter)
        .reduce(Finding::worse);
    worst.or_else(|| {
        (query.len() > LONG_QUERY).then(|| {
            let what = format!("the query of the address is {} bytes long", query.len());
            Finding::new(RiskLevel::ReversibleWithDelay, what)
        })
    })
}

fn assess_parameter(parameter: &str) -> Option<Finding> {
    const SECRETS: [&str; 12] = [
        "apikey",
        "api_key",
        "access_token",
        "auth",
        "authorization",
        "cookie",
        "passwd",
        "password",
        "pwd",
        "secret",
        "session",
        "token",
    ];
    const PAYLOADS: [&str; 11] = [
        "body", "content", "data", "dump", "exfil", "leak", "message", "msg", "note", "payload",
        "text",
    ];
    let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
    let is = |names: &[&str]| names.iter().any(|n| n.eq_ignore_ascii_case(name));
    let what = |what: &str| {
        format!(
            "the query of the address carries {what} (`{}`)",
            shown(name)
        )
    };
    if value.is_empty() {
        None
    } else if is(&SECRETS) {
        Some(Finding::new(RiskLevel::Irreversible, what("a secret")))
    } else if is(&PAYLOADS)
        || value.len() > LONG_VALUE
        || is_encoded(value)
        || has_mail_address(value)
        || has_line_break(value)
        || has_card_number(value)
    {
        Some(Finding::new(RiskLevel::ReversibleWithDelay, what("data")))
    } else {
        None
    }
}

fn is_encoded(text: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '=')))
        .any(|run| run.len() > LONG_CODE)
}

fn has_mail_address(value: &str) -> bool {
    let at = value.split_once('@').or_else(|| value.split_once("%40"));
    at.is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.'))
}

fn has_line_break(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    lower.contains("%0a") || lower.contains("%0d")
}

/// Whether there is a number with the length and check digit of a payment card.
fn has_card_number(value: &str) -> bool {
    value.split(|c: char| !c.is_ascii_digit()).any(|digits| {
        let sum: u32 = digits
            .bytes()
            .rev()
            .map(|digit| u32::from(digit - b'0'))
            .enumerate()
            .map(|(place, digit)| match (place % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled > 9 => doubled - 9,
                (_, doubled) => doubled,
            })
            .sum();
        (13..=19).contains(&digits.len()) && sum.is_multiple_of(10)
    })
}
