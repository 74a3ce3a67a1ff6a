//! Compares changed policies with the current ones on recorded calls.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::load::Policies;
use crate::request::Request;

/// A recorded call with a different decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The index of the recorded call, from 0.
    pub index: usize,
    /// The tool it called.
    pub tool: String,
    /// The decision of the old policies.
    pub before: Decision,
    /// The decision of the new policies.
    pub after: Decision,
}

impl Difference {
    /// The difference between two decisions about the same call, if there is one: in the verdict, or in the
    /// security level where approval is needed. The same verdict by another rule is not a difference.
    #[must_use]
    pub fn between(index: usize, tool: &str, before: Decision, after: Decision) -> Option<Self> {
        let relevant = |decision: &Decision| {
            let asks = decision.verdict == crate::Verdict::Ask;
            (decision.verdict, asks.then_some(decision.security_level))
        };
        (relevant(&before) != relevant(&after)).then(|| Self {
            index,
            tool: tool.to_owned(),
            before,
            after,
        })
    }

    /// Whether the new policies are less strict.
    #[must_use]
    pub fn is_weaker(&self) -> bool {
        self.after.verdict < self.before.verdict
    }
}

/// The recorded calls that old and new policies decide differently: by the verdict, or by the security
/// level where approval is needed. The same verdict by another rule is not a difference.
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
            Difference::between(index, &request.tool, before, after)
        })
        .collect()
}
