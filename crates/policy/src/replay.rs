//! Holds changed policies against calls of the past, before they decide about calls to come.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::load::Policies;
use crate::request::Request;

/// A recorded call that would be decided differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which of the recorded calls, from 0.
    pub index: usize,
    /// The tool it called.
    pub tool: String,
    /// What the old policies say.
    pub before: Decision,
    /// What the new ones say.
    pub after: Decision,
}

impl Difference {
    /// Whether the new policies are less strict.
    #[must_use]
    pub fn is_weaker(&self) -> bool {
        self.after.verdict < self.before.verdict
    }
}

/// The recorded calls about which old and new policies decide differently: another verdict, or
/// another security level where a person is asked. The same verdict by another rule is no difference.
pub fn replay<'a>(
    old: &Policies,
    new: &Policies,
    recorded: impl IntoIterator<Item = &'a Request<'a>>,
) -> Vec<Difference> {
    recorded
        .into_iter()
        .enumerate()
        .filter_map(|(index, request)| {
            let (before, after) = (old.decide(request), new.decide(request));
            let seen = |decision: &Decision| {
                let asks = decision.verdict == crate::Verdict::Ask;
                (decision.verdict, asks.then_some(decision.security_level))
            };
            (seen(&before) != seen(&after)).then(|| Difference {
                index,
                tool: request.tool.clone().into_owned(),
                before,
                after,
            })
        })
        .collect()
}
