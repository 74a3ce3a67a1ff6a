//! Gaps counted by missing capability: the same capability in other words is one.

use std::collections::BTreeSet;

use windlass_learn::gap::{merge_wishes, proposed_specification};
use windlass_spec::{GapMoment, MissingCapability, NonEmptyText, RunId, Timestamp, nearest};
use windlass_store::StoredGap;

use crate::error::ServiceError;

const DAY: i64 = 86_400_000_000;

/// A capability that was missing, with each time that it was.
#[derive(Debug, Clone)]
pub struct MissingTool {
    /// What it is called here: as a tool that has it would be, with a number if that is taken.
    pub name: String,
    /// What a tool that has it would be called.
    wanted: String,
    /// The capability, in the words it was first missed in.
    pub description: String,
    /// Each time it was missing, the latest first.
    pub occurrences: Vec<GapOccurrence>,
}

/// One time that a capability was missing.
#[derive(Debug, Clone)]
pub struct GapOccurrence {
    /// When.
    pub at: Timestamp,
    /// In which run; none if an agent could not be bound.
    pub run: Option<RunId>,
    /// Of which agent.
    pub agent: String,
    /// When in the life of a run.
    pub moment: GapMoment,
    /// The task, unless it was purged.
    pub task: Option<String>,
    /// What was reported about it, unless it was purged.
    pub missing: Option<MissingCapability>,
    /// What a tool that has it would be called.
    wanted: String,
}

impl MissingTool {
    /// Only what was missing in the last so many days; nothing if it was not.
    pub(super) fn within(mut self, days: u32, now: Timestamp) -> Option<Self> {
        let since = now.as_microseconds().saturating_sub(i64::from(days) * DAY);
        self.occurrences
            .retain(|time| time.at.as_microseconds() >= since);
        (!self.occurrences.is_empty()).then_some(self)
    }

    /// When it was missing last.
    #[must_use]
    pub fn last_at(&self) -> Timestamp {
        let all = self.occurrences.iter().map(|time| time.at);
        all.max().unwrap_or(Timestamp::from_microseconds(0))
    }

    /// How often it was missing in the last seven days.
    #[must_use]
    pub fn this_week(&self, now: Timestamp) -> usize {
        let since = now.as_microseconds().saturating_sub(7 * DAY);
        let recent = self
            .occurrences
            .iter()
            .filter(|time| time.at.as_microseconds() >= since);
        recent.count()
    }

    /// The specification that is proposed, the latest one; from its name if the words were removed.
    #[must_use]
    pub fn proposal(&self) -> Option<String> {
        let told = self
            .occurrences
            .iter()
            .filter_map(|time| time.missing.as_ref());
        let mut told = told.filter(|missing| {
            let named = missing.wanted_tool.as_ref();
            named.is_some_and(|name| name.as_str() == self.wanted)
        });
        let text = told.find_map(|missing| Some(missing.proposed_tool.as_ref()?.to_string()));
        text.or_else(|| {
            let words = words_of_name(&self.wanted);
            let tool = proposed_specification(&words)?;
            windlass_spec::write_tool(&std::sync::Arc::new(tool)).ok()
        })
    }

    /// Why a tool that the agent has does not do it, the latest reason.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        let latest = self.occurrences.first()?.missing.as_ref()?;
        latest.because.as_ref().map(NonEmptyText::as_str)
    }
}

/// A name of a tool as words.
fn words_of_name(name: &str) -> String {
    name.replace(['_', '.', '-', '/'], " ")
}

/// The capabilities that were missing in gaps, what was missing most often first; of equals, what was missing last.
pub(super) fn missing_tools(gaps: &[StoredGap]) -> Vec<MissingTool> {
    // From the oldest on, so that what comes later joins what was there.
    let mut times: Vec<(String, GapOccurrence)> = Vec::new();
    for gap in gaps.iter().rev() {
        let report = gap.report.as_ref();
        for (index, wanted) in gap.wanted.iter().enumerate() {
            let name = report.and_then(|report| report.missing_tools().get(index));
            let missing = report.and_then(|report| {
                report
                    .capabilities()
                    .iter()
                    .find(|told| Some(&told.capability) == name)
            });
            let text = name.map_or(wanted.as_str(), |name| name.as_str());
            let time = GapOccurrence {
                at: gap.noticed_at,
                run: gap.run.clone(),
                agent: gap.agent.clone(),
                moment: gap.moment,
                task: report.map(|report| report.attempted_task().to_owned()),
                missing: missing.cloned(),
                wanted: wanted.clone(),
            };
            times.push((text.to_owned(), time));
        }
    }
    let texts: Vec<&str> = times.iter().map(|(text, _)| text.as_str()).collect();
    let mut all: Vec<MissingTool> = merge_wishes(&texts)
        .into_iter()
        .filter_map(|group| {
            let (text, first) = times.get(*group.first()?)?;
            let mut joined: Vec<GapOccurrence> = group
                .iter()
                .filter_map(|index| Some(times.get(*index)?.1.clone()))
                .collect();
            // A run that was told of it before and during counts once.
            let mut runs = BTreeSet::new();
            joined.retain(|time| time.run.as_ref().is_none_or(|run| runs.insert(run.clone())));
            joined.reverse();
            Some(MissingTool {
                name: first.wanted.clone(),
                wanted: first.wanted.clone(),
                description: text.clone(),
                occurrences: joined,
            })
        })
        .collect();
    all.sort_by(|one, other| {
        let by_count = other.occurrences.len().cmp(&one.occurrences.len());
        by_count
            .then_with(|| other.last_at().cmp(&one.last_at()))
            .then_with(|| one.name.cmp(&other.name))
    });
    distinct_names(&mut all);
    all
}

/// Those that would be called the same are told apart by a number.
fn distinct_names(all: &mut [MissingTool]) {
    let mut taken = BTreeSet::new();
    for missing in all {
        let base = missing.name.clone();
        let mut count = 2;
        while !taken.insert(missing.name.clone()) {
            missing.name = format!("{base}_{count}");
            count += 1;
        }
    }
}

/// The one of that name, or the only one whose name begins so.
pub(super) fn find<'m>(
    all: &'m [MissingTool],
    name: &str,
) -> Result<&'m MissingTool, ServiceError> {
    if let Some(exact) = all.iter().find(|missing| missing.name == name) {
        return Ok(exact);
    }
    let mut begins = all.iter().filter(|missing| missing.name.starts_with(name));
    if let (Some(only), None) = (begins.next(), begins.next()) {
        return Ok(only);
    }
    let hint = match nearest(name, all.iter().map(|missing| missing.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`windlass gaps list` tells what was missing".to_owned(),
    };
    let message = format!("nothing called `{name}` was missing");
    Err(ServiceError::not_found("no_such_gap", message).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_spec::ToolName;

    fn missing(text: &str, proposed: Option<&str>) -> MissingTool {
        let name = || ToolName::new("book_flight").unwrap();
        let missing = proposed.map(|proposed| MissingCapability {
            capability: NonEmptyText::new(text).unwrap(),
            wanted_tool: Some(name()),
            confidence: None,
            nearest_tools: Vec::new(),
            proposed_tool: NonEmptyText::new(proposed).ok(),
            because: None,
        });
        let time = GapOccurrence {
            at: Timestamp::from_microseconds(0),
            run: None,
            agent: "clerk".to_owned(),
            moment: GapMoment::BeforeRun,
            task: None,
            missing,
            wanted: name().to_string(),
        };
        MissingTool {
            name: name().to_string(),
            wanted: name().to_string(),
            description: text.to_owned(),
            occurrences: vec![time],
        }
    }

    #[test]
    fn a_capability_that_is_told_apart_by_a_number_keeps_its_proposal() {
        let mut all = [
            missing("Book a flight to Rome", Some("[book_flight:Tool]")),
            missing("Book the flight simulator", Some("[of the second]")),
            missing("Book a flight of stairs", None),
        ];
        distinct_names(&mut all);
        let names: Vec<&str> = all.iter().map(|missing| missing.name.as_str()).collect();
        assert_eq!(names, ["book_flight", "book_flight_2", "book_flight_3"]);
        assert_eq!(all[1].proposal().as_deref(), Some("[of the second]"));
        // Where the words are gone, the name says what it was, and the number nothing.
        let made = all[2].proposal().unwrap();
        assert!(
            made.contains("book_flight") && !made.contains('3'),
            "{made}"
        );
    }
}
