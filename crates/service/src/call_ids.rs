//! Finds the call a person means by what they typed: its id, the id of its run, or a part of either
//! that fits only one.

use windlass_spec::CallId;

use crate::error::ServiceError;

/// Less than this at the end of an id would be a guess.
const SHORTEST_END: usize = 3;

/// How many are listed when several fit.
const SHOWN: usize = 10;

/// A call that may be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) call: CallId,
    /// Whether something can still be decided about it.
    pub(crate) is_open: bool,
}

/// What is looked for, in the words of messages.
pub(crate) struct Sought {
    /// For programs.
    pub(crate) word: &'static str,
    /// For people, such as `question`.
    pub(crate) what: &'static str,
    /// The command that lists them.
    pub(crate) listed_by: &'static str,
}

/// The call that is meant. What can still be decided about comes before what cannot, and a nearer fit
/// before a farther one.
pub(crate) fn pick(
    typed: &str,
    candidates: impl IntoIterator<Item = Candidate>,
    sought: &Sought,
) -> Result<CallId, ServiceError> {
    let mut fitting: Vec<((bool, Fit), CallId)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let fit = Fit::of(typed, &candidate.call)?;
            let is_behind = !candidate.is_open && fit != Fit::Call;
            Some(((is_behind, fit), candidate.call))
        })
        .collect();
    fitting.sort_by_key(|(rank, call)| (*rank, call.to_string()));
    fitting.dedup_by(|(_, one), (_, other)| one == other);
    let Some((best, first)) = fitting.first() else {
        let message = format!("there is no {} `{typed}`", sought.what);
        return Err(ServiceError::not_found(sought.word, message).with_hint(sought.listed_by));
    };
    let fits_as_well: Vec<String> = fitting
        .iter()
        .filter(|(rank, _)| rank == best)
        .map(|(_, call)| call.to_string())
        .collect();
    if fits_as_well.len() == 1 {
        return Ok(first.clone());
    }
    let shown = fits_as_well.iter().take(SHOWN).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    let message = format!(
        "`{typed}` fits {} {}s:\n  {}{}",
        fits_as_well.len(),
        sought.what,
        shown.join("\n  "),
        if fits_as_well.len() > SHOWN {
            "\n  …"
        } else {
            ""
        }
    );
    Err(ServiceError::invalid("ambiguous", message)
        .with_hint("give the whole id of the one you mean"))
}

/// How what was typed fits a call, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is the call's id.
    Call,
    /// It is the id of its run.
    Run,
    /// It is the id of the run that its run works for.
    OuterRun,
    /// It is the start or the end of the call's id.
    Part,
}

impl Fit {
    fn of(typed: &str, call: &CallId) -> Option<Self> {
        let (id, run) = (call.to_string(), call.run.as_str());
        let is_inner = |rest: &str| rest.starts_with('.');
        if id == typed {
            Some(Self::Call)
        } else if run == typed {
            Some(Self::Run)
        } else if typed.is_empty() {
            None
        } else if run.strip_prefix(typed).is_some_and(is_inner) {
            Some(Self::OuterRun)
        } else if id.starts_with(typed) || (typed.len() >= SHORTEST_END && id.ends_with(typed)) {
            Some(Self::Part)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Sought, pick};

    fn picked(typed: &str, ids: &[(&str, bool)]) -> Result<String, String> {
        let candidates = ids.iter().filter_map(|(id, is_open)| {
            let call = id.parse().ok()?;
            let is_open = *is_open;
            Some(Candidate { call, is_open })
        });
        let sought = Sought {
            word: "no_such_approval",
            what: "question",
            listed_by: "windlass approvals list",
        };
        let picked = pick(typed, candidates, &sought);
        picked
            .map(|call| call.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_part_that_fits_one_call_is_enough() {
        let ids = [("run1:1:0", true), ("run2:1:1", true), ("run2:2:0", false)];
        for (typed, expected) in [
            ("run1:1:0", "run1:1:0"),
            ("run1", "run1:1:0"),
            ("un1:1:0", "run1:1:0"),
            ("run2:2", "run2:2:0"),
            // Only one of the two can still be decided about.
            ("run2", "run2:1:1"),
            // Settled, but exactly what was typed.
            ("run2:2:0", "run2:2:0"),
        ] {
            assert_eq!(picked(typed, &ids).as_deref(), Ok(expected), "{typed}");
        }
    }

    #[test]
    fn a_run_itself_comes_before_what_begins_like_it() {
        let ids = [
            ("r1:1:0", true),
            ("r10:1:0", true),
            ("r1.1.0:1:0", true),
            ("r2.1.0:1:0", true),
        ];
        assert_eq!(picked("r1", &ids).as_deref(), Ok("r1:1:0"));
        assert_eq!(picked("r2", &ids).as_deref(), Ok("r2.1.0:1:0"));
    }

    #[test]
    fn what_fits_several_is_listed_and_what_fits_none_is_not_found() {
        let ids = [("r1:1:0", true), ("r1:1:1", true)];
        let error = picked("r1", &ids).err().unwrap_or_default();
        assert!(
            error.contains("fits 2 questions:\n  r1:1:0\n  r1:1:1"),
            "{error}"
        );
        for typed in ["", "0", ":0", "r3", "1:7"] {
            let error = picked(typed, &ids[..1]).err().unwrap_or_default();
            assert!(
                error.starts_with("there is no question"),
                "{typed}: {error}"
            );
        }
    }
}
