//! Caches the answers of rules. An answer depends only on the parties of a request and on the attributes
//! that the rules use. Requests that are equal in these share one answer.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use cedar_policy::RestrictedExpression;

use crate::analysis::{INPUT, Mentions, SESSION};
use crate::request::Request;
use crate::value;
use crate::verdict::Verdict;

/// The maximum number of cached answers. When it is reached, the cache is cleared.
const MAX_ANSWERS: usize = 1_024;

/// The attributes of a request that the rules use, by their names in the context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct VisibleAttributes(Vec<(&'static str, Value)>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Value {
    Text(String),
    Truth(bool),
    Count(u32),
    /// A decimal number, as it is written.
    Decimal(String),
    Record(Vec<(&'static str, Self)>),
}

impl VisibleAttributes {
    /// The attributes of a request that rules with these mentions use.
    pub(crate) fn of(mentions: &Mentions, request: &Request<'_>) -> Self {
        let mut visible = Vec::new();
        let mut add = |name: &'static str, value: &dyn Fn() -> Option<Value>| {
            if mentions.attribute(name) {
                visible.extend(value().map(|value| (name, value)));
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
        Self(visible)
    }

    /// Converts them to attributes of the context.
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
    let visible = fields.into_iter();
    Value::Record(
        visible
            .filter(|(name, _)| mentions.of_session(name))
            .collect(),
    )
}

impl Value {
    fn expression(self) -> Option<RestrictedExpression> {
        Some(match self {
            Self::Text(text) => RestrictedExpression::new_string(text),
            Self::Truth(truth) => RestrictedExpression::new_bool(truth),
            Self::Count(count) => RestrictedExpression::new_long(i64::from(count)),
            Self::Decimal(digits) => RestrictedExpression::new_decimal(digits),
            Self::Record(fields) => {
                let fields = VisibleAttributes(fields).pairs();
                RestrictedExpression::new_record(fields).ok()?
            }
        })
    }
}

/// The verdict of the rules about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleAnswer {
    pub(crate) verdict: Verdict,
    pub(crate) rules: Vec<String>,
}

/// Everything that the verdict depends on, if the rules do not use the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// The tenant, the principal, the agent and the tool.
    parties: [String; 4],
    visible: VisibleAttributes,
    needs_person: bool,
}

impl CacheKey {
    /// The cache key of a request; `None` if the rules use its arguments, which rarely repeat.
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
            visible: VisibleAttributes::of(mentions, request),
            needs_person,
        })
    }
}

/// The cached answers of the rules.
#[derive(Default)]
pub(crate) struct AnswerCache {
    answers: Mutex<HashMap<CacheKey, RuleAnswer>>,
}

impl AnswerCache {
    pub(crate) fn get(&self, key: &CacheKey) -> Option<RuleAnswer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(key).cloned()
    }

    pub(crate) fn insert(&self, key: CacheKey, answer: &RuleAnswer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(key, answer.clone());
    }
}

impl fmt::Debug for AnswerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerCache").finish_non_exhaustive()
    }
}

impl Clone for AnswerCache {
    /// A copy starts empty, because its rules may differ.
    fn clone(&self) -> Self {
        Self::default()
    }
}
