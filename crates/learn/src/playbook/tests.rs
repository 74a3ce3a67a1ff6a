//! Invariants of a playbook: counts are the fold of the evidence in any order, and merging is idempotent and never
//! merges a strategy with a pitfall.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use windlass_spec::{
    AgentName, Confidence, ErrorCategory, NonEmptyText, RunId, StrategyId, StrategySection,
    Timestamp, ToolCallingStrategy, ToolName, read_strategies,
};

use super::*;

mod common;
mod files;
mod judging;
mod merging;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(1_800_000_000_000_000 + second * 1_000_000)
}

fn tools(names: &[&str]) -> Vec<ToolName> {
    names
        .iter()
        .map(|name| ToolName::new(*name).unwrap())
        .collect()
}

fn text(text: &str) -> NonEmptyText {
    NonEmptyText::new(text).unwrap()
}

fn succeeded(run: &str, task: &str, sequence: &[&str]) -> RunEvidence {
    RunEvidence {
        run: RunId::new(run).unwrap(),
        agent: AgentName::new("agent").unwrap(),
        at: at(0),
        task: NonEmptyText::new(task).ok(),
        verdict: RunVerdict::Succeeded,
        because: "it finished".to_owned(),
        iterations: 4,
        sequence: tools(sequence),
        pitfalls: Vec::new(),
        recalled: Vec::new(),
        lacks: Vec::new(),
    }
}

fn entry(run: RunEvidence) -> PlaybookEntry {
    PlaybookEntry::Run(Box::new(run))
}

fn fold(entries: &[PlaybookEntry]) -> Playbook {
    SemanticCurator::new(CurationSettings::default()).fold("orders", entries)
}

fn with_tools<'p>(playbook: &'p Playbook, names: &[&str]) -> &'p KeptStrategy {
    let wanted = tools(names);
    let mut all = playbook.strategies.iter();
    all.find(|kept| kept.strategy.tool_sequence() == wanted)
        .unwrap()
}

fn experience(calls: &[(&str, Result<(), ErrorCategory>)]) -> Experience {
    Experience {
        run: RunId::new("r1").unwrap(),
        agent: AgentName::new("agent").unwrap(),
        at: at(0),
        task: Some(text("Refund order 7")),
        ended: ExperienceEnd::Completed,
        confidence: Confidence::FULL,
        checked: None,
        refused_by_person: None,
        iterations: 5,
        calls: calls
            .iter()
            .map(|(tool, outcome)| ToolAttempt {
                tool: ToolName::new(*tool).unwrap(),
                outcome: *outcome,
                teaches: true,
            })
            .collect(),
        recalled: Vec::new(),
    }
}

fn reflect(experience: &Experience) -> RunEvidence {
    let reflector = GroundedReflector::default();
    reflector.reflect(experience, Vec::new()).unwrap()
}

const FAILED: Result<(), ErrorCategory> = Err(ErrorCategory::NotFound);

#[test]
fn new_strategy_starts_with_helpful_count_1() {
    let evidence = reflect(&experience(&[("find", Ok(())), ("refund", Ok(()))]));
    let playbook = fold(&[entry(evidence)]);
    let kept = with_tools(&playbook, &["find", "refund"]);
    assert_eq!(kept.strategy.section, StrategySection::Strategies);
    assert_eq!(
        (kept.strategy.helpful_count, kept.strategy.harmful_count),
        (1, 0)
    );
    assert_eq!(kept.strategy.tool_success_rate(), Some(1.0));
    assert_eq!(kept.strategy.avg_iterations(), Some(5.0));
    assert_eq!(kept.strategy.example_task, Some(text("Refund order 7")));
    assert_eq!(
        kept.strategy.content.as_str(),
        "For tasks like \"Refund order 7\": `find`, then `refund`."
    );
    assert_eq!(kept.strategy.runs, [RunId::new("r1").unwrap()]);
    assert_eq!(kept.strategy.tags, ["orders"]);
}

#[test]
fn new_pitfall_starts_with_harmful_count_1_and_is_never_retired_as_harmful() {
    let calls = [("find", Ok(())), ("refund", FAILED), ("cancel", Ok(()))];
    let mut entries = Vec::new();
    for run in 0..40 {
        let mut evidence = reflect(&experience(&calls));
        evidence.run = RunId::new(format!("r{run}")).unwrap();
        entries.push(entry(evidence));
        let playbook = fold(&entries);
        let pitfall = with_tools(&playbook, &["find", "refund"]);
        assert_eq!(pitfall.strategy.section, StrategySection::Pitfalls);
        assert_eq!(pitfall.strategy.harmful_count, run + 1);
        assert_eq!(pitfall.status, StrategyStatus::Active);
    }
}

#[test]
fn failed_run_becomes_a_pitfall() {
    let mut failed = experience(&[("find", Ok(())), ("list", Ok(()))]);
    failed.ended = ExperienceEnd::Incomplete("it ran out of turns".to_owned());
    let evidence = reflect(&failed);
    assert_eq!(evidence.verdict, RunVerdict::Failed);
    let playbook = fold(&[entry(evidence)]);
    assert_eq!(playbook.strategies.len(), 1);
    let kept = &playbook.strategies[0];
    assert_eq!(kept.strategy.section, StrategySection::Pitfalls);
    assert!(
        kept.strategy
            .content
            .as_str()
            .starts_with("Avoid `find`, then `list`")
    );
}

#[test]
fn verdict_depends_on_events_and_not_on_confidence_alone() {
    let good = [("find", Ok(()))];
    let verdict = |change: &dyn Fn(&mut Experience)| {
        let mut changed = experience(&good);
        change(&mut changed);
        reflect(&changed).verdict
    };
    assert_eq!(verdict(&|_| {}), RunVerdict::Succeeded);
    // Confidence is necessary, but not sufficient.
    assert_eq!(
        verdict(&|e| e.confidence = Confidence::NONE),
        RunVerdict::Unclear
    );
    // It must be above the threshold: text without `finish`, at 0.5, teaches nothing.
    assert_eq!(
        verdict(&|e| e.confidence = Confidence::HALF),
        RunVerdict::Unclear
    );
    let above = Confidence::clamped(0.51).0;
    assert_eq!(verdict(&|e| e.confidence = above), RunVerdict::Succeeded);
    assert_eq!(verdict(&|e| e.checked = Some(false)), RunVerdict::Failed);
    assert_eq!(
        verdict(&|e| e.calls[0].outcome = FAILED),
        RunVerdict::Failed
    );
    assert_eq!(
        verdict(&|e| {
            e.calls[0].outcome = FAILED;
            e.checked = Some(true);
        }),
        RunVerdict::Succeeded
    );
    assert_eq!(
        verdict(&|e| e.ended = ExperienceEnd::Incomplete("out of turns".to_owned())),
        RunVerdict::Failed
    );
    // A person's decision is no evidence about tools.
    assert_eq!(
        verdict(&|e| e.ended = ExperienceEnd::Stopped("stopped".to_owned())),
        RunVerdict::Unclear
    );
    assert_eq!(
        verdict(&|e| e.refused_by_person = ToolName::new("find").ok()),
        RunVerdict::Unclear
    );
}

#[test]
fn calls_that_untrusted_content_may_have_caused_are_not_learned() {
    let calls = [
        ("read_page", Ok(())),
        ("send_money", Ok(())),
        ("note", Ok(())),
    ];
    let mut tainted = experience(&calls);
    tainted.calls[1].teaches = false;
    tainted.task = None;
    let evidence = reflect(&tainted);
    assert_eq!(evidence.sequence, tools(&["read_page", "note"]));
    let playbook = fold(&[entry(evidence)]);
    let content = playbook.strategies[0].strategy.content.as_str();
    assert_eq!(
        content,
        "These calls went well together: `read_page`, then `note`."
    );
}

#[test]
fn strategy_is_followed_if_its_tools_succeeded_in_its_order() {
    let recalled = |id: &str, names: &[&str]| ShownStrategy {
        id: StrategyId::new(id).unwrap(),
        section: StrategySection::Strategies,
        sequence: tools(names),
    };
    let mut run = experience(&[("find", Ok(())), ("list", Ok(())), ("refund", Ok(()))]);
    run.recalled = vec![
        recalled("a", &["find", "refund"]),
        recalled("b", &["refund", "find"]),
    ];
    let votes = reflect(&run).recalled;
    assert_eq!((votes[0].followed, votes[0].vote), (true, Vote::Helpful));
    assert_eq!((votes[1].followed, votes[1].vote), (false, Vote::Neutral));
    run.ended = ExperienceEnd::Incomplete("out of turns".to_owned());
    assert_eq!(reflect(&run).recalled[0].vote, Vote::Harmful);
}

#[test]
fn strategy_tried_without_success_is_harmful_unless_another_was_followed() {
    let recalled = |id: &str, names: &[&str]| ShownStrategy {
        id: StrategyId::new(id).unwrap(),
        section: StrategySection::Strategies,
        sequence: tools(names),
    };
    let mut run = experience(&[("fly", FAILED), ("find", Ok(()))]);
    run.recalled = vec![recalled("a", &["fly", "land"])];
    assert_eq!(reflect(&run).recalled[0].vote, Vote::Harmful);
    run.recalled.push(recalled("b", &["find"]));
    let votes = reflect(&run).recalled;
    assert_eq!(
        (votes[0].vote, votes[1].vote),
        (Vote::Neutral, Vote::Helpful)
    );
}

#[test]
fn run_counts_once_for_a_strategy() {
    let mut twice = succeeded("r1", "Refund it", &["find", "refund"]);
    let id = with_tools(&fold(&[entry(twice.clone())]), &["find", "refund"])
        .id()
        .clone();
    twice.recalled = vec![StrategyVote {
        strategy: id,
        followed: true,
        vote: Vote::Helpful,
    }];
    let first = entry(succeeded("r0", "Refund it", &["find", "refund"]));
    let playbook = fold(&[first, entry(twice.clone()), entry(twice)]);
    let kept = with_tools(&playbook, &["find", "refund"]);
    assert_eq!(kept.tally.helpful(), 2);
    assert_eq!(playbook.runs, 2);
}

#[test]
fn common_subsequence_of_similar_tasks_becomes_a_strategy() {
    let one = entry(succeeded(
        "r1",
        "Refund the order of Ada",
        &["a", "b", "x", "c", "d"],
    ));
    let two = entry(succeeded(
        "r2",
        "Refund the order of Grace",
        &["z", "b", "c", "y"],
    ));
    let other = entry(succeeded(
        "r3",
        "What is the weather in Rome?",
        &["b", "c", "q"],
    ));
    assert_eq!(fold(std::slice::from_ref(&one)).strategies.len(), 1);
    let playbook = fold(&[one, two, other]);
    let common = with_tools(&playbook, &["b", "c"]);
    assert_eq!(common.tally.helpful(), 2);
    assert_eq!(
        common.strategy.example_task,
        Some(text("Refund the order of Ada"))
    );
    assert_eq!(playbook.strategies.len(), 4);
}

#[test]
fn strategy_is_retired_while_its_tool_is_missing() {
    let mut entries = vec![entry(succeeded("r1", "Refund it", &["find", "refund"]))];
    let mut later = succeeded("r2", "Find it", &["find"]);
    later.lacks = tools(&["refund"]);
    entries.push(entry(later));
    let status = |entries: &[PlaybookEntry]| {
        with_tools(&fold(entries), &["find", "refund"])
            .status
            .clone()
    };
    let missing = RetiredReason::MissingTool(ToolName::new("refund").unwrap());
    assert_eq!(status(&entries), StrategyStatus::Retired(missing));
    // An agent that did not prove the strategy does not count.
    let mut other = succeeded("r3", "Find it", &["find"]);
    other.agent = AgentName::new("other").unwrap();
    entries.push(entry(other));
    assert!(matches!(
        status(&entries),
        StrategyStatus::Retired(RetiredReason::MissingTool(_))
    ));
    entries.push(entry(succeeded("r4", "Find it", &["find"])));
    assert_eq!(status(&entries), StrategyStatus::Active);
}

#[test]
fn harmful_strategy_is_retired_unless_it_is_pinned() {
    let mut entries = vec![entry(succeeded("r0", "Refund it", &["find", "refund"]))];
    let id = with_tools(&fold(&entries), &["find", "refund"])
        .id()
        .clone();
    let harmed = |run: usize| {
        let mut run = succeeded(&format!("h{run}"), "Other", &["list"]);
        run.recalled = vec![StrategyVote {
            strategy: id.clone(),
            followed: false,
            vote: Vote::Harmful,
        }];
        entry(run)
    };
    entries.push(harmed(0));
    let status = |entries: &[PlaybookEntry]| {
        with_tools(&fold(entries), &["find", "refund"])
            .status
            .clone()
    };
    // One failure against one success is not significant.
    assert_eq!(status(&entries), StrategyStatus::Active);
    entries.extend((1..8).map(harmed));
    assert_eq!(
        status(&entries),
        StrategyStatus::Retired(RetiredReason::Harmful)
    );
    entries.push(PlaybookEntry::Pinned {
        strategy: id.clone(),
        pinned: true,
        at: at(1),
    });
    assert_eq!(status(&entries), StrategyStatus::Active);
}

#[test]
fn playbook_stays_within_its_budget_and_keeps_the_most_reliable() {
    let settings = CurationSettings {
        max_items: 3,
        ..CurationSettings::default()
    };
    let mut entries = Vec::new();
    for (tool, times) in [("a", 1), ("b", 5), ("c", 2), ("d", 4), ("e", 3)] {
        for time in 0..times {
            entries.push(entry(succeeded(&format!("{tool}{time}"), tool, &[tool])));
        }
    }
    let playbook = SemanticCurator::new(settings).fold("orders", &entries);
    let active: Vec<&str> = playbook
        .active()
        .map(|kept| kept.strategy.tool_sequence()[0].as_str())
        .collect();
    assert_eq!(active, ["b", "d", "e"]);
    let out = with_tools(&playbook, &["a"]);
    assert_eq!(out.status, StrategyStatus::Retired(RetiredReason::Budget));
    // With a larger budget it is active again.
    assert_eq!(
        with_tools(&fold(&entries), &["a"]).status,
        StrategyStatus::Active
    );
    let few = CurationSettings {
        max_tokens: 10,
        ..CurationSettings::default()
    };
    let playbook = SemanticCurator::new(few).fold("orders", &entries);
    assert_eq!(playbook.active().count(), 1);
}

#[test]
fn unused_strategy_is_retired() {
    let settings = CurationSettings {
        unused_after: 3,
        ..CurationSettings::default()
    };
    let mut entries = vec![entry(succeeded("r0", "Refund it", &["refund"]))];
    entries.extend((1..5).map(|run| entry(succeeded(&format!("r{run}"), "Find it", &["find"]))));
    let playbook = SemanticCurator::new(settings).fold("orders", &entries);
    let unused = with_tools(&playbook, &["refund"]);
    assert_eq!(
        unused.status,
        StrategyStatus::Retired(RetiredReason::Unused)
    );
}

#[test]
fn revert_drops_later_entries_and_can_be_reverted() {
    let one = entry(succeeded("r1", "One", &["a"]));
    let two = entry(succeeded("r2", "Two", &["b"]));
    let back = |to: usize| PlaybookEntry::Reverted { to, at: at(9) };
    let mut entries = vec![one, two, back(1)];
    let names = |entries: &[PlaybookEntry]| -> Vec<String> {
        let playbook = fold(entries);
        let all = playbook.strategies.iter();
        all.map(|kept| kept.strategy.tool_sequence()[0].to_string())
            .collect()
    };
    assert_eq!(names(&entries), ["a"]);
    entries.push(entry(succeeded("r3", "Three", &["c"])));
    assert_eq!(names(&entries), ["a", "c"]);
    entries.push(back(2));
    assert_eq!(names(&entries), ["a", "b"]);
    entries.push(back(4));
    assert_eq!(names(&entries), ["a", "c"]);
    entries.push(back(0));
    assert!(names(&entries).is_empty());
}

#[test]
fn edits_in_the_file_are_applied_except_for_counts() {
    let entries = vec![
        entry(succeeded("r1", "One", &["a"])),
        entry(succeeded("r2", "Two", &["b"])),
    ];
    let written = fold(&entries);
    let mut lines: Vec<ToolCallingStrategy> = written
        .strategies
        .iter()
        .map(|kept| kept.strategy.clone())
        .collect();
    lines[0].content = text("Always begin with `a`.");
    lines[0].helpful_count = 99;
    lines[1] = ToolCallingStrategy::new(StrategySection::Observations, text("Be kind"));
    let file: String = lines
        .iter()
        .map(|line| format!("{}\n", serde_json::to_string(line).unwrap()))
        .collect();
    let edits = hand_edits(&written, &read_strategies(&file), at(5));
    assert_eq!(edits.len(), 3);
    let playbook = fold(&[entries, edits].concat());
    let kept = with_tools(&playbook, &["a"]);
    assert_eq!(kept.strategy.content, text("Always begin with `a`."));
    assert_eq!(kept.strategy.helpful_count, 1);
    assert_eq!(playbook.strategies.len(), 2);
    assert_eq!(playbook.strategies[1].strategy.content, text("Be kind"));
    // An unchanged file has no edits.
    let same = read_strategies(&written.to_lines());
    assert!(hand_edits(&written, &same, at(6)).is_empty());
}

#[test]
fn removed_strategy_returns_when_it_is_learned_again() {
    let mut entries = vec![entry(succeeded("r1", "One", &["a"]))];
    let id = fold(&entries).strategies[0].id().clone();
    entries.push(PlaybookEntry::Removed {
        strategy: id,
        at: at(1),
    });
    assert!(fold(&entries).strategies.is_empty());
    entries.push(entry(succeeded("r2", "One", &["a"])));
    assert_eq!(fold(&entries).strategies[0].tally.helpful(), 1);
}

fn any_sequence() -> impl Strategy<Value = Vec<ToolName>> {
    vec(select(vec!["a", "b", "c", "d"]), 0..5).prop_map(|names| tools(&names))
}

fn any_run() -> impl Strategy<Value = RunEvidence> {
    let verdict = select(vec![
        RunVerdict::Succeeded,
        RunVerdict::Failed,
        RunVerdict::Unclear,
    ]);
    let vote = select(vec![Vote::Helpful, Vote::Harmful, Vote::Neutral]);
    let voted = (any_sequence(), vote).prop_map(|(sequence, vote)| StrategyVote {
        strategy: words::strategy_id(StrategySection::Strategies, &sequence, ""),
        followed: vote == Vote::Helpful,
        vote,
    });
    let pitfall = vec(select(vec!["a", "b"]), 1..3).prop_map(|names| Pitfall {
        sequence: tools(&names),
        category: Some(ErrorCategory::NotFound),
    });
    (
        0..30_u32,
        verdict,
        any_sequence(),
        vec(voted, 0..3),
        vec(pitfall, 0..2),
        1..9_u32,
    )
        .prop_map(|(run, verdict, sequence, recalled, pitfalls, iterations)| {
            let task = match run % 2 {
                0 => format!("Refund the order of customer {run}"),
                _ => format!("Tell the weather in Rome on day {run}"),
            };
            RunEvidence {
                verdict,
                recalled,
                pitfalls,
                iterations,
                sequence,
                ..succeeded(&format!("r{run}"), &task, &[])
            }
        })
}

/// The counts of each strategy, ordered by id.
fn counts(playbook: &Playbook) -> Vec<(StrategyId, u64, u64, Option<f64>)> {
    let mut counts: Vec<_> = playbook
        .strategies
        .iter()
        .map(|kept| {
            let strategy = &kept.strategy;
            (
                kept.id().clone(),
                strategy.helpful_count,
                strategy.harmful_count,
                strategy.avg_iterations(),
            )
        })
        .collect();
    counts.sort_by(|one, two| one.0.cmp(&two.0));
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn counts_are_the_fold_of_the_evidence_in_any_order(
        mut runs in vec(any_run(), 1..12),
        order in any::<u64>(),
    ) {
        // Repeated entries of a run are equal.
        let mut seen = std::collections::HashMap::new();
        for run in &mut runs {
            let first = seen.entry(run.run.clone()).or_insert_with(|| run.clone());
            *run = first.clone();
        }
        let entries: Vec<PlaybookEntry> = runs.into_iter().map(entry).collect();
        let mut shuffled = entries.clone();
        crate::ab::Random::new(order).shuffle(&mut shuffled);
        let (one, two) = (fold(&entries), fold(&shuffled));
        prop_assert_eq!(counts(&one), counts(&two));
        // Votes also count for common subsequences of similar tasks.
        for kept in &one.strategies {
            let is_about = |run: &&RunEvidence| {
                run.recalled.iter().any(|voted| voted.strategy == *kept.id())
            };
            let harmful = seen.values().filter(is_about).filter(|run| {
                let mut votes = run.recalled.iter();
                votes.any(|voted| voted.strategy == *kept.id() && voted.vote == Vote::Harmful)
            });
            if kept.strategy.section == StrategySection::Strategies {
                prop_assert_eq!(kept.tally.harmful(), harmful.count() as u64);
            }
        }
    }

    #[test]
    fn playbook_survives_writing_and_reading(runs in vec(any_run(), 0..10)) {
        let entries: Vec<PlaybookEntry> = runs.into_iter().map(entry).collect();
        let playbook = fold(&entries);
        let file = playbook.to_lines();
        let read = read_strategies(&file);
        prop_assert!(read.errors.is_empty());
        prop_assert!(hand_edits(&playbook, &read, at(1)).is_empty());
        let log: String = entries
            .iter()
            .map(|entry| format!("{}\n", serde_json::to_string(entry).unwrap()))
            .collect();
        prop_assert_eq!(fold(&read_log(&log).entries).to_lines(), file);
    }

    #[test]
    fn strategies_and_pitfalls_are_never_merged(runs in vec(any_run(), 0..12)) {
        let entries: Vec<PlaybookEntry> = runs.into_iter().map(entry).collect();
        let mut seen = std::collections::HashSet::new();
        for kept in fold(&entries).strategies {
            let key = (kept.strategy.section, kept.strategy.tool_sequence().to_vec());
            prop_assert!(seen.insert(key), "duplicate strategy");
            let is_pitfall = kept.strategy.section == StrategySection::Pitfalls;
            prop_assert!(!is_pitfall || kept.strategy.helpful_count == 0);
        }
    }

    #[test]
    fn lower_bound_rises_with_success_and_falls_with_failure(good in 0..500_u64, bad in 0..500_u64) {
        let bound = lower_bound(good, bad);
        prop_assert!((0.0..=1.0).contains(&bound));
        prop_assert!(lower_bound(good, bad + 1) <= bound + 1e-12);
        prop_assert!(good + bad == 0 || lower_bound(good + 1, bad) >= bound - 1e-12);
    }
}

#[test]
fn lower_bound_ranks_20_of_22_above_1_of_1() {
    assert!(lower_bound(20, 2) > lower_bound(1, 0));
}
