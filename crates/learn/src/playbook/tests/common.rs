//! What similar tasks have in common is a strategy like any other: runs and people have their say about it.

use super::*;

/// Two similar tasks whose sequences have `b`, `c` in common, and nothing else.
fn two_alike() -> Vec<Evidence> {
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

fn in_common(entries: &[Evidence]) -> Option<KeptStrategy> {
    let wanted = tools(&["b", "c"]);
    let mut all = fold(entries).strategies.into_iter();
    all.find(|kept| kept.strategy.tool_sequence() == wanted)
}

fn id() -> StrategyId {
    in_common(&two_alike()).unwrap().id().clone()
}

/// A run for something else in which the common strategy was put before the model.
fn voted(run: &str, vote: Vote) -> Evidence {
    let mut run = succeeded(run, "What is the weather in Rome?", &["q"]);
    run.recalled = vec![Voted {
        strategy: id(),
        followed: vote == Vote::Helpful,
        vote,
    }];
    entry(run)
}

#[test]
fn votes_on_what_tasks_have_in_common_count_and_demote_it() {
    let mut entries = two_alike();
    entries.push(voted("v", Vote::Helpful));
    let kept = in_common(&entries).unwrap();
    assert_eq!((kept.tally.helpful(), kept.tally.recalled()), (3, 1));
    entries.extend((0..12).map(|run| voted(&format!("h{run}"), Vote::Harmful)));
    let kept = in_common(&entries).unwrap();
    assert_eq!(kept.tally.harmful(), 12);
    assert_eq!(kept.standing, Standing::Retired(Retired::Harmful));
}

#[test]
fn what_tasks_have_in_common_can_be_pinned_and_switched_off() {
    let mut entries = two_alike();
    entries.push(Evidence::Pinned {
        strategy: id(),
        pinned: true,
        at: at(1),
    });
    assert!(in_common(&entries).unwrap().strategy.pinned);
    entries.push(Evidence::Disabled {
        strategy: id(),
        disabled: true,
        at: at(2),
    });
    assert_eq!(in_common(&entries).unwrap().standing, Standing::Disabled);
}

#[test]
fn what_tasks_have_in_common_can_be_put_otherwise() {
    let mut entries = two_alike();
    entries.push(Evidence::Worded {
        strategy: id(),
        content: text("To pay back: `b`, then `c`."),
        at: at(1),
    });
    let kept = in_common(&entries).unwrap();
    assert_eq!(kept.strategy.content, text("To pay back: `b`, then `c`."));
    let mut strategy = kept.strategy;
    strategy.content = text("Money back: `b`, `c`.");
    entries.push(Evidence::Edited {
        strategy: Box::new(strategy),
        at: at(2),
    });
    let kept = in_common(&entries).unwrap();
    assert_eq!(kept.strategy.content, text("Money back: `b`, `c`."));
    assert_eq!(kept.tally.helpful(), 2);
}

#[test]
fn what_was_removed_is_not_brought_back_by_what_was_known_then() {
    let mut entries = two_alike();
    entries.push(Evidence::Removed {
        strategy: id(),
        at: at(1),
    });
    assert_eq!(in_common(&entries), None);
    // It is learned again by what happens later, and counts from then on.
    let again = succeeded("r3", "Refund the order of Joan", &["b", "c"]);
    entries.push(entry(again));
    assert_eq!(in_common(&entries).unwrap().tally.helpful(), 1);
}

#[test]
fn a_whole_sequence_that_was_removed_stays_out_although_two_similar_tasks_proved_it() {
    let mut entries = vec![
        entry(succeeded("r1", "Refund the order of Ada", &["b", "c"])),
        entry(succeeded("r2", "Refund the order of Grace", &["b", "c"])),
    ];
    assert_eq!(in_common(&entries).unwrap().tally.helpful(), 2);
    entries.push(Evidence::Removed {
        strategy: id(),
        at: at(1),
    });
    assert_eq!(in_common(&entries), None);
}

#[test]
fn a_sequence_to_which_a_person_gave_other_tools_leaves_the_old_one_to_what_happens_later() {
    let mut entries = two_alike();
    let edited = in_common(&entries).unwrap().strategy;
    entries.push(Evidence::Edited {
        strategy: Box::new(edited.with_sequence(tools(&["b", "d"])).unwrap()),
        at: at(1),
    });
    assert_eq!(in_common(&entries), None);
    let playbook = fold(&entries);
    assert_eq!(with_tools(&playbook, &["b", "d"]).tally.helpful(), 2);
    entries.push(entry(succeeded(
        "r3",
        "Refund the order of Joan",
        &["b", "c"],
    )));
    assert_eq!(in_common(&entries).unwrap().tally.helpful(), 1);
}

#[test]
fn thousands_of_runs_are_folded_while_nobody_waits() {
    let names = ["find", "list", "refund", "cancel", "note", "ask", "send"];
    let entries: Vec<Evidence> = (0..2_000)
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
    // Optimised it takes some tens of milliseconds; as tests are built it is many times slower.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
