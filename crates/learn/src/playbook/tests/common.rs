//! Strategies from common subsequences of similar tasks: votes and edits apply to them as to any other.

use super::*;

/// Two similar tasks whose sequences have `b`, `c` in common, and nothing else.
fn similar_runs() -> Vec<PlaybookEntry> {
    vec![
        entry(succeeded(
            "r1",
            "Refund the order of Ada",
            &["a", "b", "x", "c"],
        )),
        entry(succeeded(
            "r2",
            "Refund the order of Grace",
            &["z", "b", "c", "y"],
        )),
    ]
}

fn common_strategy(entries: &[PlaybookEntry]) -> Option<KeptStrategy> {
    let wanted = tools(&["b", "c"]);
    let mut all = fold(entries).strategies.into_iter();
    all.find(|kept| kept.strategy.tool_sequence() == wanted)
}

fn id() -> StrategyId {
    common_strategy(&similar_runs()).unwrap().id().clone()
}

/// A run of another task in which the model was shown the common strategy.
fn run_with_vote(run: &str, vote: Vote) -> PlaybookEntry {
    let mut run = succeeded(run, "What is the weather in Rome?", &["q"]);
    run.recalled = vec![StrategyVote {
        strategy: id(),
        followed: vote == Vote::Helpful,
        vote,
    }];
    entry(run)
}

#[test]
fn votes_on_a_common_strategy_count_and_can_retire_it() {
    let mut entries = similar_runs();
    entries.push(run_with_vote("v", Vote::Helpful));
    let kept = common_strategy(&entries).unwrap();
    assert_eq!((kept.tally.helpful(), kept.tally.recalled()), (3, 1));
    entries.extend((0..12).map(|run| run_with_vote(&format!("h{run}"), Vote::Harmful)));
    let kept = common_strategy(&entries).unwrap();
    assert_eq!(kept.tally.harmful(), 12);
    assert_eq!(kept.status, StrategyStatus::Retired(RetiredReason::Harmful));
}

#[test]
fn common_strategy_can_be_pinned_and_disabled() {
    let mut entries = similar_runs();
    entries.push(PlaybookEntry::Pinned {
        strategy: id(),
        pinned: true,
        at: at(1),
    });
    assert!(common_strategy(&entries).unwrap().strategy.pinned);
    entries.push(PlaybookEntry::Disabled {
        strategy: id(),
        disabled: true,
        at: at(2),
    });
    assert_eq!(
        common_strategy(&entries).unwrap().status,
        StrategyStatus::Disabled
    );
}

#[test]
fn common_strategy_can_be_reworded_and_edited() {
    let mut entries = similar_runs();
    entries.push(PlaybookEntry::Worded {
        strategy: id(),
        content: text("To pay back: `b`, then `c`."),
        at: at(1),
    });
    let kept = common_strategy(&entries).unwrap();
    assert_eq!(kept.strategy.content, text("To pay back: `b`, then `c`."));
    let mut strategy = kept.strategy;
    strategy.content = text("Money back: `b`, `c`.");
    entries.push(PlaybookEntry::Edited {
        strategy: Box::new(strategy),
        at: at(2),
    });
    let kept = common_strategy(&entries).unwrap();
    assert_eq!(kept.strategy.content, text("Money back: `b`, `c`."));
    assert_eq!(kept.tally.helpful(), 2);
}

#[test]
fn removed_common_strategy_is_not_restored_by_earlier_runs() {
    let mut entries = similar_runs();
    entries.push(PlaybookEntry::Removed {
        strategy: id(),
        at: at(1),
    });
    assert_eq!(common_strategy(&entries), None);
    // Later runs teach it again, and it counts from then on.
    let again = succeeded("r3", "Refund the order of Joan", &["b", "c"]);
    entries.push(entry(again));
    assert_eq!(common_strategy(&entries).unwrap().tally.helpful(), 1);
}

#[test]
fn removed_strategy_stays_removed_although_two_similar_tasks_proved_it() {
    let mut entries = vec![
        entry(succeeded("r1", "Refund the order of Ada", &["b", "c"])),
        entry(succeeded("r2", "Refund the order of Grace", &["b", "c"])),
    ];
    assert_eq!(common_strategy(&entries).unwrap().tally.helpful(), 2);
    entries.push(PlaybookEntry::Removed {
        strategy: id(),
        at: at(1),
    });
    assert_eq!(common_strategy(&entries), None);
}

#[test]
fn old_sequence_of_an_edited_strategy_is_learned_again_only_from_later_runs() {
    let mut entries = similar_runs();
    let edited = common_strategy(&entries).unwrap().strategy;
    entries.push(PlaybookEntry::Edited {
        strategy: Box::new(edited.with_sequence(tools(&["b", "d"])).unwrap()),
        at: at(1),
    });
    assert_eq!(common_strategy(&entries), None);
    let playbook = fold(&entries);
    assert_eq!(with_tools(&playbook, &["b", "d"]).tally.helpful(), 2);
    entries.push(entry(succeeded(
        "r3",
        "Refund the order of Joan",
        &["b", "c"],
    )));
    assert_eq!(common_strategy(&entries).unwrap().tally.helpful(), 1);
}

#[test]
fn folding_thousands_of_runs_is_fast() {
    let names = ["find", "list", "refund", "cancel", "note", "ask", "send"];
    let entries: Vec<PlaybookEntry> = (0..2_000)
        .map(|run| {
            let about = names[run % 7];
            let task = format!("{about} something number {run} for customer {}", run * 31);
            let sequence: Vec<&str> = (0..3 + run % 4)
                .map(|step| names[(run + step * 2) % 7])
                .collect();
            entry(succeeded(&format!("r{run:05}"), &task, &sequence))
        })
        .collect();
    let begun = std::time::Instant::now();
    let playbook = fold(&entries);
    assert!(!playbook.strategies.is_empty());
    // An optimised build takes some tens of milliseconds; a test build is many times slower.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
