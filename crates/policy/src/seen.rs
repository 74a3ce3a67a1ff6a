//! What rules see of a request beside who asks for what with which arguments: only what they look at.
//! Requests of the same parties that are seen alike get the same answer, so what was said to the first is
//! said to the others without asking again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use cedar_policy::RestrictedExpression;

use crate::analysis::{INPUT, Mentions, SESSION};
use crate::request::Request;
use crate::value;
use crate::verdict::Verdict;

/// How many answers are kept. When there are more, all are asked for again.
const MOST: usize = 1_024;

/// The parts of a request that are looked at, by their names in the context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen(Vec<(&'static str, Value)>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Value {
    Text(String),
    Truth(bool),
    Count(u32),
    /// A number with its places, as it is written.
    Decimal(String),
    Record(Vec<(&'static str, Self)>),
}

impl Seen {
    /// What rules that look at this see of a request.
    pub(crate) fn of(mentions: &Mentions, request: &Request<'_>) -> Self {
        let mut seen = Vec::new();
        let mut add = |name: &'static str, value: &dyn Fn() -> Option<Value>| {
            if mentions.attribute(name) {
                seen.extend(value().map(|value| (name, value)));
            }
        };
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        add("risk", &|| text(request.risk.as_str()));
        add("confidence", &|| {
            let digits = request.confidence.map(value::digits);
            digits.map(Value::Decimal)
        });
        add("environment", &|| text(&request.environment));
        add("tainted", &|| Some(Value::Truth(request.tainted)));
        add(SESSION, &|| Some(session(mentions, request)));
        Self(seen)
    }

    /// The same as the context has it.
    pub(crate) fn pairs(self) -> Vec<(String, RestrictedExpression)> {
        let pairs = self.0.into_iter();
        let pairs = pairs.filter_map(|(name, value)| Some((name.to_owned(), value.expression()?)));
        pairs.collect()
    }
}

fn session(mentions: &Mentions, request: &Request<'_>) -> Value {
    let session = &request.session;
    let fields = [
        ("calls", Value::Count(session.calls)),
        ("tool_calls", Value::Count(session.tool_calls)),
        (
            "irreversible_calls",
            Value::Count(session.irreversible_calls),
        ),
        ("denied_calls", Value::Count(session.denied_calls)),
        ("sensitive_read", Value::Truth(session.sensitive_read)),
    ];
    let seen = fields.into_iter();
    Value::Record(seen.filter(|(name, _)| mentions.of_session(name)).collect())
}

impl Value {
    fn expression(self) -> Option<RestrictedExpression> {
        Some(match self {
            Self::Text(text) => RestrictedExpression::new_string(text),
            Self::Truth(truth) => RestrictedExpression::new_bool(truth),
            Self::Count(count) => RestrictedExpression::new_long(i64::from(count)),
            Self::Decimal(digits) => RestrictedExpression::new_decimal(digits),
            Self::Record(fields) => {
                let fields = Seen(fields).pairs();
                RestrictedExpression::new_record(fields).ok()?
            }
        })
    }
}

/// What the rules say to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) verdict: Verdict,
    pub(crate) rules: Vec<String>,
}

/// All that what the rules say depends on, if they do not look at the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// The tenant, the principal, the agent and the tool.
    parties: [String; 4],
    seen: Seen,
    needs_person: bool,
}

impl Question {
    /// What is asked about a request; nothing if the rules look at its arguments, which hardly ever come again.
    pub(crate) fn of(
        mentions: &Mentions,
        request: &Request<'_>,
        needs_person: bool,
    ) -> Option<Self> {
        let parties = [
            &request.tenant,
            &request.principal,
            &request.agent,
            &request.tool,
        ];
        (!mentions.attribute(INPUT)).then(|| Self {
            parties: parties.map(|name| name.clone().into_owned()),
            seen: Seen::of(mentions, request),
            needs_person,
        })
    }
}

/// What the rules said of late.
#[derive(Default)]
pub(crate) struct Said {
    words: Mutex<HashMap<Question, Word>>,
}

impl Said {
    pub(crate) fn get(&self, question: &Question) -> Option<Word> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.get(question).cloned()
    }

    pub(crate) fn note(&self, question: Question, word: &Word) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() >= MOST {
            words.clear();
        }
        words.insert(question, word.clone());
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Said").finish_non_exhaustive()
    }
}

impl Clone for Said {
    /// Other policies are asked themselves.
    fn clone(&self) -> Self {
        Self::default()
    }
}
