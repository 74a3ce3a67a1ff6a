//! Decisions: the rules that can apply to the tool are evaluated without an approval and, if necessary,
//! with one. The decision is the stricter of their verdict and the floor. Any error denies.

use windlass_spec::SecurityLevel;

use crate::approvers::{Demands, combine};
use crate::cache::{CacheKey, RuleAnswer};
use crate::decision::{Decision, Fault};
use crate::evaluate::{Case, Outcome, Parties};
use crate::floor::floor_reason;
use crate::load::Policies;
use crate::request::Request;
use crate::schema::Tool;
use crate::slice::Slice;
use crate::verdict::{Verdict, default_security_level};

impl Policies {
    /// Decides about a call. The same call gets the same decision.
    #[must_use]
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        let floor = floor_reason(
            request.risk,
            request.confidence,
            request.tainted,
            &self.floor,
        );
        let needs_person = floor.verdict() >= Verdict::Ask;
        let (mut answer, mut faults) = match self.cached_answer(request, needs_person) {
            Ok(answer) => (answer, Vec::new()),
            Err(faults) => {
                let answer = RuleAnswer {
                    verdict: Verdict::Deny,
                    rules: Vec::new(),
                };
                (answer, faults)
            }
        };
        // In the order of the text; Cedar has no order.
        answer
            .rules
            .sort_by_key(|id| self.rule(id).map(|rule| rule.place));
        faults.sort_by_cached_key(ToString::to_string);
        let rules = || answer.rules.iter().filter_map(|id| self.rule(id));
        let raised: Option<SecurityLevel> = rules().filter_map(|rule| rule.security_level).max();
        let usual = default_security_level(request.risk);
        let reasons = rules().filter_map(|rule| rule.reason.clone()).collect();
        let demands: Vec<&Demands> = rules().map(|rule| &rule.demands).collect();
        let (approvers, expires_seconds) = combine(demands.into_iter());
        Decision {
            approvers,
            expires_seconds,
            verdict: floor.verdict().max(answer.verdict),
            floor,
            policies: answer.verdict,
            security_level: raised.map_or(usual, |raised| raised.max(usual)),
            reasons,
            rules: answer.rules,
            faults,
        }
    }

    /// The verdict of the rules. If the call needs approval anyway, it must also be permitted once it is
    /// approved. Faults are not cached.
    fn cached_answer(
        &self,
        request: &Request<'_>,
        needs_person: bool,
    ) -> Result<RuleAnswer, Vec<Fault>> {
        let name: &str = &request.tool;
        let (Some(tool), Some(slice)) = (self.tools.get(name), self.slices.get(name)) else {
            let tool = name.to_owned();
            return Err(vec![Fault::UnknownTool { tool }]);
        };
        let undeclared = |argument: &&String| !tool.declared.contains(*argument);
        if let Some(argument) = request.input.keys().find(undeclared) {
            let argument = argument.clone();
            return Err(vec![Fault::UndeclaredArgument { argument }]);
        }
        let key = CacheKey::of(&slice.mentions, request, needs_person);
        if let Some(answer) = key.as_ref().and_then(|key| self.answers.get(key)) {
            return Ok(answer);
        }
        let answer = self.evaluate(tool, slice, request, needs_person)?;
        if let Some(key) = key {
            self.answers.insert(key, &answer);
        }
        Ok(answer)
    }

    fn evaluate(
        &self,
        tool: &Tool,
        slice: &Slice,
        request: &Request<'_>,
        needs_person: bool,
    ) -> Result<RuleAnswer, Vec<Fault>> {
        let parties = Parties::new(&self.types, tool, request).map_err(|fault| vec![fault])?;
        let case = |mentions, approved| Case::new(&parties, mentions, tool, request, approved);

        let unapproved = case(&slice.mentions, false)?;
        let steady = unapproved.evaluate(&self.authorizer, &slice.steady)?;
        let pending = unapproved.evaluate(&self.authorizer, &slice.unapproved)?;
        if !steady.forbids.is_empty() {
            return Ok(RuleAnswer {
                verdict: Verdict::Deny,
                rules: both(steady.forbids, pending.forbids),
            });
        }
        if permitted(&steady, &pending) && !needs_person {
            return Ok(RuleAnswer {
                verdict: Verdict::Allow,
                rules: both(steady.permits, pending.permits),
            });
        }
        let approved = case(&slice.approved.mentions, true)?;
        let approved = approved.evaluate(&self.authorizer, &slice.approved)?;
        Ok(if !permitted(&steady, &approved) {
            RuleAnswer {
                verdict: Verdict::Deny,
                rules: approved.forbids,
            }
        } else if permitted(&steady, &pending) {
            RuleAnswer {
                verdict: Verdict::Allow,
                rules: both(steady.permits, pending.permits),
            }
        } else if pending.forbids.is_empty() {
            RuleAnswer {
                verdict: Verdict::Ask,
                rules: approved.permits,
            }
        } else {
            RuleAnswer {
                verdict: Verdict::Ask,
                rules: pending.forbids,
            }
        })
    }
}

/// Whether two sets of rules together permit a call: at least one permits and none forbids.
fn permitted(one: &Outcome, other: &Outcome) -> bool {
    one.forbids.is_empty()
        && other.forbids.is_empty()
        && !(one.permits.is_empty() && other.permits.is_empty())
}

/// Concatenates two lists of rules.
fn both(mut one: Vec<String>, other: Vec<String>) -> Vec<String> {
    one.extend(other);
    one
}
