//! Deciding: the rules that can apply to the tool are asked without an approval and, where it
//! matters, with one. The decision is the stricter of what they say and the floor. Whatever goes
//! wrong on the way denies.

use windlass_spec::SecurityLevel;

use crate::decision::{Decision, Fault};
use crate::evaluate::{Case, Outcome, Parties};
use crate::floor::floor_reason;
use crate::load::Policies;
use crate::request::Request;
use crate::schema::Tool;
use crate::seen::{Question, Word};
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
        let (mut word, mut faults) = match self.consult(request, needs_person) {
            Ok(word) => (word, Vec::new()),
            Err(faults) => {
                let word = Word {
                    verdict: Verdict::Deny,
                    rules: Vec::new(),
                };
                (word, faults)
            }
        };
        // In the order of the text; the policy language has none.
        word.rules
            .sort_by_key(|id| self.rule(id).map(|rule| rule.place));
        faults.sort_by_cached_key(ToString::to_string);
        let rules = || word.rules.iter().filter_map(|id| self.rule(id));
        let raised: Option<SecurityLevel> = rules().filter_map(|rule| rule.security_level).max();
        let usual = default_security_level(request.risk);
        let reasons = rules().filter_map(|rule| rule.reason.clone()).collect();
        Decision {
            verdict: floor.verdict().max(word.verdict),
            floor,
            policies: word.verdict,
            security_level: raised.map_or(usual, |raised| raised.max(usual)),
            reasons,
            rules: word.rules,
            faults,
        }
    }

    /// What the rules say. If a person is asked anyway, the call must also be permitted once they
    /// have approved it. What goes wrong is found anew each time.
    fn consult(&self, request: &Request<'_>, needs_person: bool) -> Result<Word, Vec<Fault>> {
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
        let question = Question::of(&slice.mentions, request, needs_person);
        if let Some(word) = question.as_ref().and_then(|asked| self.said.get(asked)) {
            return Ok(word);
        }
        let word = self.ask(tool, slice, request, needs_person)?;
        if let Some(question) = question {
            self.said.note(question, &word);
        }
        Ok(word)
    }

    fn ask(
        &self,
        tool: &Tool,
        slice: &Slice,
        request: &Request<'_>,
        needs_person: bool,
    ) -> Result<Word, Vec<Fault>> {
        let parties = Parties::new(&self.types, tool, request).map_err(|fault| vec![fault])?;
        let case = |mentions, approved| Case::new(&parties, mentions, tool, request, approved);

        let unapproved = case(&slice.mentions, false)?;
        let steady = unapproved.before(&self.authorizer, &slice.steady)?;
        let pending = unapproved.before(&self.authorizer, &slice.unapproved)?;
        if !steady.forbids.is_empty() {
            return Ok(Word {
                verdict: Verdict::Deny,
                rules: both(steady.forbids, pending.forbids),
            });
        }
        if permitted(&steady, &pending) && !needs_person {
            return Ok(Word {
                verdict: Verdict::Allow,
                rules: both(steady.permits, pending.permits),
            });
        }
        let approved = case(&slice.approved.mentions, true)?;
        let approved = approved.before(&self.authorizer, &slice.approved)?;
        Ok(if !permitted(&steady, &approved) {
            Word {
                verdict: Verdict::Deny,
                rules: approved.forbids,
            }
        } else if permitted(&steady, &pending) {
            Word {
                verdict: Verdict::Allow,
                rules: both(steady.permits, pending.permits),
            }
        } else if pending.forbids.is_empty() {
            Word {
                verdict: Verdict::Ask,
                rules: approved.permits,
            }
        } else {
            Word {
                verdict: Verdict::Ask,
                rules: pending.forbids,
            }
        })
    }
}

/// Whether two parts of the rules together permit a call: one does and none forbids.
fn permitted(one: &Outcome, other: &Outcome) -> bool {
    one.forbids.is_empty()
        && other.forbids.is_empty()
        && !(one.permits.is_empty() && other.permits.is_empty())
}

/// The rules of both.
fn both(mut one: Vec<String>, other: Vec<String>) -> Vec<String> {
    one.extend(other);
    one
}
