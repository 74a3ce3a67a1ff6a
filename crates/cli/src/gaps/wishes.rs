//! Gaps counted by wish: the same wish in other words is one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_learn::gap::{merge_wishes, proposed_specification};
use windlass_spec::{GapMoment, MissingCapability, NonEmptyText, RunId, Timestamp, nearest};
use windlass_store::StoredGap;

const DAY: i64 = 86_400_000_000;

/// Something that was missing, as often as it was.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// What it is called here: as a tool that does it would be, with a number if that is taken.
    pub(super) tool: String,
    /// What a tool that does it would be called.
    wanted: String,
    /// What is wished for, as it was said first.
    pub(super) text: String,
    /// Each time it was missing, the latest first.
    pub(super) times: Vec<Time>,
}

/// One time that something was missing.
#[derive(Debug, Clone)]
pub(super) struct Time {
    pub(super) at: Timestamp,
    pub(super) run: Option<RunId>,
    pub(super) agent: String,
    pub(super) moment: GapMoment,
    /// The task, unless it was removed by a purge.
    pub(super) task: Option<String>,
    /// What was told about it, unless it was removed.
    pub(super) missing: Option<MissingCapability>,
    /// What a tool that does it would be called.
    wanted: String,
}

impl Wish {
    /// Only what was missing in the last so many days; nothing if it was not.
    pub(super) fn within(mut self, days: u32, now: Timestamp) -> Option<Self> {
        let since = now.as_microseconds().saturating_sub(i64::from(days) * DAY);
        self.times.retain(|time| time.at.as_microseconds() >= since);
        (!self.times.is_empty()).then_some(self)
    }

    pub(super) fn last_at(&self) -> Timestamp {
        let all = self.times.iter().map(|time| time.at);
        all.max().unwrap_or(Timestamp::from_microseconds(0))
    }

    /// How often it was missing in the last seven days.
    pub(super) fn this_week(&self, now: Timestamp) -> usize {
        let since = now.as_microseconds().saturating_sub(7 * DAY);
        let recent = self
            .times
            .iter()
            .filter(|time| time.at.as_microseconds() >= since);
        recent.count()
    }

    /// The same in a sentence.
    pub(super) fn how_often(&self, now: Timestamp) -> String {
        let times = |count: usize| match count {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let (all, week) = (self.times.len(), self.this_week(now));
        match week == all {
            true => format!("asked for {} this week", times(week)),
            false => format!("asked for {} this week, {} in all", times(week), times(all)),
        }
    }

    /// The specification that is proposed, the latest one; from its name if the words were removed.
    pub(super) fn proposal(&self) -> Option<String> {
        let told = self.times.iter().filter_map(|time| time.missing.as_ref());
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
    pub(super) fn because(&self) -> Option<&str> {
        let latest = self.times.first()?.missing.as_ref()?;
        latest.because.as_ref().map(NonEmptyText::as_str)
    }

    pub(super) fn as_object(&self, now: Timestamp) -> Value {
        let agents: BTreeSet<&str> = self.times.iter().map(|time| time.agent.as_str()).collect();
        let mut moments: BTreeMap<&str, usize> = BTreeMap::new();
        for time in &self.times {
            *moments.entry(time.moment.as_str()).or_default() += 1;
        }
        let first = self.times.iter().map(|time| time.at).min();
        json!({
            "tool": self.tool,
            "wish": self.text,
            "count": self.times.len(),
            "this_week": self.this_week(now),
            "first_at": first,
            "last_at": self.last_at(),
            "agents": agents,
            "moments": moments,
        })
    }

    pub(super) fn in_full(&self, now: Timestamp) -> Value {
        let mut object = self.as_object(now);
        let times = self.times.iter().map(|time| {
            json!({
                "at": time.at,
                "run": time.run,
                "agent": time.agent,
                "moment": time.moment,
                "task": time.task,
                "missing": time.missing,
            })
        });
        object["times"] = times.collect();
        object["proposed_tool"] = json!(self.proposal());
        object
    }
}

/// A name of a tool as words.
fn words_of_name(name: &str) -> String {
    name.replace(['_', '.', '-', '/'], " ")
}

/// The wishes among gaps, what was missing most often first; of equals, what was missing last.
pub(super) fn wishes(gaps: &[StoredGap]) -> Vec<Wish> {
    // From the oldest on, so that what comes later joins what was there.
    let mut times: Vec<(String, Time)> = Vec::new();
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
            let time = Time {
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
    let mut wishes: Vec<Wish> = merge_wishes(&texts)
        .into_iter()
        .filter_map(|group| {
            let (text, first) = times.get(*group.first()?)?;
            let mut joined: Vec<Time> = group
                .iter()
                .filter_map(|index| Some(times.get(*index)?.1.clone()))
                .collect();
            // A run that was told of it before and during counts once.
            let mut runs = BTreeSet::new();
            joined.retain(|time| time.run.as_ref().is_none_or(|run| runs.insert(run.clone())));
            joined.reverse();
            Some(Wish {
                tool: first.wanted.clone(),
                wanted: first.wanted.clone(),
                text: text.clone(),
                times: joined,
            })
        })
        .collect();
    wishes.sort_by(|one, other| {
        let by_count = other.times.len().cmp(&one.times.len());
        by_count
            .then_with(|| other.last_at().cmp(&one.last_at()))
            .then_with(|| one.tool.cmp(&other.tool))
    });
    distinct_names(&mut wishes);
    wishes
}

/// Wishes that would be called the same are told apart by a number.
fn distinct_names(wishes: &mut [Wish]) {
    let mut taken = BTreeSet::new();
    for wish in wishes {
        let base = wish.tool.clone();
        let mut count = 2;
        while !taken.insert(wish.tool.clone()) {
            wish.tool = format!("{base}_{count}");
            count += 1;
        }
    }
}

/// The wish of that name, or the only one whose name begins so.
pub(super) fn found<'w>(wishes: &'w [Wish], name: &str) -> anyhow::Result<&'w Wish> {
    if let Some(exact) = wishes.iter().find(|wish| wish.tool == name) {
        return Ok(exact);
    }
    let mut begins = wishes.iter().filter(|wish| wish.tool.starts_with(name));
    if let (Some(only), None) = (begins.next(), begins.next()) {
        return Ok(only);
    }
    let known: Vec<&str> = wishes.iter().map(|wish| wish.tool.as_str()).collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`windlass gaps list` tells what was missing".to_owned(),
    };
    anyhow::bail!("nothing called `{name}` was missing\nhint: {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_spec::ToolName;

    fn wish(text: &str, proposed: Option<&str>) -> Wish {
        let name = || ToolName::new("book_flight").unwrap();
        let missing = proposed.map(|proposed| MissingCapability {
            capability: NonEmptyText::new(text).unwrap(),
            wanted_tool: Some(name()),
            confidence: None,
            nearest_tools: Vec::new(),
            proposed_tool: NonEmptyText::new(proposed).ok(),
            because: None,
        });
        let time = Time {
            at: Timestamp::from_microseconds(0),
            run: None,
            agent: "clerk".to_owned(),
            moment: GapMoment::BeforeRun,
            task: None,
            missing,
            wanted: name().to_string(),
        };
        Wish {
            tool: name().to_string(),
            wanted: name().to_string(),
            text: text.to_owned(),
            times: vec![time],
        }
    }

    #[test]
    fn a_wish_that_is_told_apart_by_a_number_keeps_its_proposal() {
        let mut wishes = [
            wish("Book a flight to Rome", Some("[book_flight:Tool]")),
            wish("Book the flight simulator", Some("[of the second]")),
            wish("Book a flight of stairs", None),
        ];
        distinct_names(&mut wishes);
        let names: Vec<&str> = wishes.iter().map(|wish| wish.tool.as_str()).collect();
        assert_eq!(names, ["book_flight", "book_flight_2", "book_flight_3"]);
        assert_eq!(wishes[1].proposal().as_deref(), Some("[of the second]"));
        // Where the words are gone, the name says what it was, and the number nothing.
        let made = wishes[2].proposal().unwrap();
        assert!(
            made.contains("book_flight") && !made.contains('3'),
            "{made}"
        );
    }
}
