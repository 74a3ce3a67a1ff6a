//! Counts gaps by missing capability. The same capability in other words counts as one.

use std::collections::BTreeSet;

use windlass_learn::gap::{group_similar_capabilities, proposed_specification};
use windlass_spec::{GapMoment, MissingCapability, NonEmptyText, RunId, Timestamp, nearest};
use windlass_store::StoredGap;

use crate::error::ServiceError;

const DAY: i64 = 86_400_000_000;

/// A missing capability with its occurrences.
#[derive(Debug, Clone)]
pub struct MissingTool {
    /// Its unique name: the name of a tool that would have it, with a number if that is taken.
    pub name: String,
    /// The name of a tool that would have it.
    wanted: String,
    /// The capability, in the words of its first occurrence.
    pub description: String,
    /// Its occurrences, the latest first.
    pub occurrences: Vec<GapOccurrence>,
}

/// An occurrence of a missing capability.
#[derive(Debug, Clone)]
pub struct GapOccurrence {
    /// When.
    pub at: Timestamp,
    /// The run; `None` if an agent could not be bound.
    pub run: Option<RunId>,
    /// The agent.
    pub agent: String,
    /// Whether before, during or instead of a run.
    pub moment: GapMoment,
    /// The task, unless it was purged.
    pub task: Option<String>,
    /// The report about it, unless it was purged.
    pub missing: Option<MissingCapability>,
    /// The name of a tool that would have it.
    wanted: String,
}

impl MissingTool {
    /// Restricts the occurrences to the last days; `None` if there are none.
    pub(super) fn within(mut self, days: u32, now: Timestamp) -> Option<Self> {
        let since = now.as_microseconds().saturating_sub(i64::from(days) * DAY);
        self.occurrences
            .retain(|time| time.at.as_microseconds() >= since);
        (!self.occurrences.is_empty()).then_some(self)
    }

    /// When it occurred last.
    #[must_use]
    pub fn last_at(&self) -> Timestamp {
        let all = self.occurrences.iter().map(|time| time.at);
        all.max().unwrap_or(Timestamp::from_microseconds(0))
    }

    /// How often it occurred in the last seven days.
    #[must_use]
    pub fn this_week(&self, now: Timestamp) -> usize {
        let since = now.as_microseconds().saturating_sub(7 * DAY);
        let recent = self
            .occurrences
            .iter()
            .filter(|time| time.at.as_microseconds() >= since);
        recent.count()
    }

    /// The latest proposed specification; made from the name if the words were purged.
    #[must_use]
    pub fn proposal(&self) -> Option<String> {
        let reports = self
            .occurrences
            .iter()
            .filter_map(|time| time.missing.as_ref());
        let mut reports = reports.filter(|missing| {
            let named = missing.wanted_tool.as_ref();
            named.is_some_and(|name| name.as_str() == self.wanted)
        });
        let text = reports.find_map(|missing| Some(missing.proposed_tool.as_ref()?.to_string()));
        text.or_else(|| {
            let words = words_of_name(&self.wanted);
            let tool = proposed_specification(&words)?;
            windlass_spec::write_tool(&std::sync::Arc::new(tool)).ok()
        })
    }

    /// The latest reason why a tool that the agent has does not do it.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        let latest = self.occurrences.first()?.missing.as_ref()?;
        latest.because.as_ref().map(NonEmptyText::as_str)
    }
}

/// The words of a tool's name.
fn words_of_name(name: &str) -> String {
    name.replace(['_', '.', '-', '/'], " ")
}

/// The missing capabilities of gaps, the most frequent first, then the latest.
pub(super) fn missing_tools(gaps: &[StoredGap]) -> Vec<MissingTool> {
    // Oldest first, so that later occurrences join earlier ones.
    let mut times: Vec<(String, GapOccurrence)> = Vec::new();
    for gap in gaps.iter().rev() {
        let report = gap.report.as_ref();
        for (index, wanted) in gap.wanted.iter().enumerate() {
            let name = report.and_then(|report| report.missing_tools().get(index));
            let missing = report.and_then(|report| {
                report
                    .capabilities()
                    .iter()
                    .find(|missing| Some(&missing.capability) == name)
            });
            let words = missing.map(MissingCapability::words).or(name);
            let text = words.map_or(wanted.as_str(), |words| words.as_str());
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
    // A tool that exists and does nothing is one missing capability, whatever task needed it.
    for (text, time) in &mut times {
        let missing = time.missing.as_ref();
        if missing.is_some_and(|missing| missing.because.is_some()) {
            text.clone_from(&time.wanted);
        }
    }
    let texts: Vec<&str> = times.iter().map(|(text, _)| text.as_str()).collect();
    let mut all: Vec<MissingTool> = group_similar_capabilities(&texts)
        .into_iter()
        .filter_map(|group| {
            let (text, first) = times.get(*group.first()?)?;
            let mut joined: Vec<GapOccurrence> = group
                .iter()
                .filter_map(|index| Some(times.get(*index)?.1.clone()))
                .collect();
            // A run with a report before and during it counts once.
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

/// Adds numbers to equal names.
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

/// The one of that name, or the only one with that prefix.
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
        None => "`windlass gaps list` lists the missing tools".to_owned(),
    };
    let message = format!("no missing tool is called `{name}`");
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
            request: None,
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
    fn a_capability_whose_name_has_a_number_keeps_its_proposal() {
        let mut all = [
            missing("Book a flight to Rome", Some("[book_flight:Tool]")),
            missing("Book the flight simulator", Some("[of the second]")),
            missing("Book a flight of stairs", None),
        ];
        distinct_names(&mut all);
        let names: Vec<&str> = all.iter().map(|missing| missing.name.as_str()).collect();
        assert_eq!(names, ["book_flight", "book_flight_2", "book_flight_3"]);
        assert_eq!(all[1].proposal().as_deref(), Some("[of the second]"));
        // Without the words, the proposal is made from the name without its number.
        let made = all[2].proposal().unwrap();
        assert!(
            made.contains("book_flight") && !made.contains('3'),
            "{made}"
        );
    }
}
