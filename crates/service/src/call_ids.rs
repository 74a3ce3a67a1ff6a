//! Finds a call by a typed id: its id, the id of its run, or a part of either that matches only one.

use windlass_spec::CallId;

use crate::error::ServiceError;

/// The shortest suffix of an id that is accepted.
const MIN_SUFFIX: usize = 3;

/// How many calls are listed when several match.
const SHOWN: usize = 10;

/// A call that may match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) call: CallId,
    /// Whether it can still be decided.
    pub(crate) is_open: bool,
}

/// What is searched for, in the words of messages.
pub(crate) struct Sought {
    /// The error code if nothing matches.
    pub(crate) word: &'static str,
    /// The noun for people, such as `request`.
    pub(crate) what: &'static str,
    /// The hint that names the command to list them.
    pub(crate) listed_by: &'static str,
}

/// The call that matches best. Calls that can still be decided come first, then closer matches.
pub(crate) fn pick(
    typed: &str,
    candidates: impl IntoIterator<Item = Candidate>,
    sought: &Sought,
) -> Result<CallId, ServiceError> {
    let mut fitting: Vec<((bool, Fit), CallId)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let fit = Fit::of(typed, &candidate.call)?;
            let is_closed = !candidate.is_open && fit != Fit::Call;
            Some(((is_closed, fit), candidate.call))
        })
        .collect();
    fitting.sort_by_key(|(rank, call)| (*rank, call.to_string()));
    fitting.dedup_by(|(_, one), (_, other)| one == other);
    let Some((best, first)) = fitting.first() else {
        let message = format!("there is no {} `{typed}`", sought.what);
        return Err(ServiceError::not_found(sought.word, message).with_hint(sought.listed_by));
    };
    let best_matches: Vec<String> = fitting
        .iter()
        .filter(|(rank, _)| rank == best)
        .map(|(_, call)| call.to_string())
        .collect();
    if best_matches.len() == 1 {
        return Ok(first.clone());
    }
    let shown = best_matches.iter().take(SHOWN).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    let message = format!(
        "`{typed}` matches {} {}s:\n  {}{}",
        best_matches.len(),
        sought.what,
        shown.join("\n  "),
        if best_matches.len() > SHOWN {
            "\n  …"
        } else {
            ""
        }
    );
    Err(ServiceError::invalid("ambiguous", message).with_hint("use a complete id"))
}

/// How a typed id matches a call, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is the call's id.
    Call,
    /// It is the id of its run.
    Run,
    /// It is the id of a parent of its run.
    OuterRun,
    /// It is the start or the end of the call's id, or the end of its run's.
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
        } else if id.starts_with(typed)
            || (typed.len() >= MIN_SUFFIX && (id.ends_with(typed) || is_end_of_run(run, typed)))
        {
            Some(Self::Part)
        } else {
            None
        }
    }
}

/// Whether a typed id is the end of the id of a run or of one of its parents, as lists of runs show it.
fn is_end_of_run(run: &str, typed: &str) -> bool {
    let outer = run.split('.').next().unwrap_or_default();
    run.ends_with(typed) || outer.ends_with(typed)
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
            what: "request",
            listed_by: "`windlass approvals list` lists all requests",
        };
        let picked = pick(typed, candidates, &sought);
        picked
            .map(|call| call.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_part_that_matches_one_call_is_enough() {
        let ids = [
            ("run1:1:0", true),
            ("run2:1:1", true),
            ("run2:2:0", false),
            ("a-long-run3.1.0:1:0", true),
        ];
        for (typed, expected) in [
            ("run1:1:0", "run1:1:0"),
            ("run1", "run1:1:0"),
            ("un1:1:0", "run1:1:0"),
            // The end of its run, as `runs list` shows it.
            ("long-run3", "a-long-run3.1.0:1:0"),
            ("run3", "a-long-run3.1.0:1:0"),
            ("run2:2", "run2:2:0"),
            // Only one of the two can still be decided.
            ("run2", "run2:1:1"),
            // Settled, but an exact match.
            ("run2:2:0", "run2:2:0"),
        ] {
            assert_eq!(picked(typed, &ids).as_deref(), Ok(expected), "{typed}");
        }
    }

    #[test]
    fn a_run_comes_before_runs_with_the_same_prefix() {
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
    fn several_matches_are_listed_and_no_match_is_not_found() {
        let ids = [("r1:1:0", true), ("r1:1:1", true)];
        let error = picked("r1", &ids).err().unwrap_or_default();
        assert!(
            error.contains("matches 2 requests:\n  r1:1:0\n  r1:1:1"),
            "{error}"
        );
        for typed in ["", "0", ":0", "r3", "1:7"] {
            let error = picked(typed, &ids[..1]).err().unwrap_or_default();
            assert!(error.starts_with("there is no request"), "{typed}: {error}");
        }
    }
}
