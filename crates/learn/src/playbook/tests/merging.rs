//! What is merged: the same tools, or the same words; what is brought here twice counts once.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn bullet(section: StrategySection, content: &str) -> Evidence {
    Evidence::Added {
        strategy: Box::new(ToolCallingStrategy::new(section, text(content))),
        at: at(0),
    }
}

#[test]
fn a_bullet_that_says_the_same_is_one_but_never_across_sections() {
    let playbook = fold(&[
        bullet(
            StrategySection::Strategies,
            "Ask for the order number first",
        ),
        bullet(
            StrategySection::Strategies,
            "Please ask for an order number first.",
        ),
        bullet(StrategySection::Pitfalls, "Ask for the order number first"),
    ]);
    assert_eq!(playbook.strategies.len(), 2);
    assert_eq!(playbook.strategies[0].strategy.aliases.len(), 1);
    assert_eq!(
        playbook.strategies[1].strategy.section,
        StrategySection::Pitfalls
    );
}

#[test]
fn adding_the_same_strategy_again_changes_no_count() {
    let mut strategy = ToolCallingStrategy::new(StrategySection::Strategies, text("Do it"))
        .with_sequence(tools(&["a", "b"]))
        .unwrap();
    strategy.helpful_count = 15;
    strategy.harmful_count = 2;
    let added = Evidence::Added {
        strategy: Box::new(strategy.clone()),
        at: at(0),
    };
    let once = fold(std::slice::from_ref(&added));
    let twice = fold(&[added.clone(), added.clone()]);
    assert_eq!(once.strategies[0].tally.helpful(), 15);
    assert_eq!(twice.strategies[0].tally, once.strategies[0].tally);
    // Under another id it is the same tools from somebody else: both counts count.
    strategy.id = StrategyId::new("theirs").ok();
    let theirs = Evidence::Added {
        strategy: Box::new(strategy),
        at: at(1),
    };
    for entries in [[added.clone(), theirs.clone()], [theirs, added]] {
        let both = fold(&entries);
        assert_eq!(both.strategies.len(), 1);
        assert_eq!(both.strategies[0].tally.helpful(), 30);
    }
}

#[test]
fn bullets_that_differ_in_what_matters_are_kept_apart() {
    let apart = |one: &str, two: &str| {
        let section = StrategySection::Strategies;
        let playbook = fold(&[bullet(section, one), bullet(section, two)]);
        assert_eq!(playbook.strategies.len(), 2, "{one} / {two}");
    };
    apart("Always confirm the address", "Never confirm the address");
    apart("Confirm the address", "Do not confirm the address");
    apart("Do confirm the address", "Don't confirm the address");
    apart("You can ship it", "You can't ship it");
    apart("Refund within 14 days", "Refund within 30 days");
    apart("Refund within 1.5 days", "Refund within 15 days");
    apart("Below -5 degrees, stop", "Below 5 degrees, stop");
    apart("Refund before you ship", "Ship before you refund");
    apart("Send it from Rome to Oslo", "Send it to Rome from Oslo");
    apart("Call Ada first", "Call Grace first");
}

#[test]
fn bullets_that_say_the_same_are_one_and_keep_what_people_said_of_either() {
    let section = StrategySection::Observations;
    let mut entries = vec![
        bullet(section, "Do not ship orders on Sundays."),
        bullet(section, "Please don't ship the order on Sunday"),
    ];
    let id = |entry: &Evidence| match entry {
        Evidence::Added { strategy, .. } => id_of(strategy),
        _ => unreachable!(),
    };
    let (first, second) = (id(&entries[0]), id(&entries[1]));
    let said = |strategy: &StrategyId, is_off: bool| Evidence::Disabled {
        strategy: strategy.clone(),
        disabled: is_off,
        at: at(1),
    };
    entries.push(said(&second, true));
    entries.push(Evidence::Pinned {
        strategy: second.clone(),
        pinned: true,
        at: at(2),
    });
    let playbook = fold(&entries);
    assert_eq!(playbook.strategies.len(), 1);
    let kept = &playbook.strategies[0];
    assert_eq!(
        (kept.id(), &kept.strategy.aliases[..]),
        (&first, &[second][..])
    );
    assert_eq!(kept.standing, Standing::Disabled);
    assert!(kept.strategy.pinned);
    // What is said later of the one that is left takes it back.
    entries.push(said(&first, false));
    assert_eq!(fold(&entries).strategies[0].standing, Standing::Active);
}

fn added(line: &ToolCallingStrategy) -> Evidence {
    Evidence::Added {
        strategy: Box::new(line.clone()),
        at: at(7),
    }
}

#[test]
fn what_is_exported_and_brought_back_counts_once() {
    let mut entries = vec![entry(succeeded("r1", "Refund it", &["find", "refund"]))];
    let exported = |entries: &[Evidence]| fold(entries).strategies[0].strategy.clone();
    let helpful = |entries: &[Evidence]| fold(entries).strategies[0].tally.helpful();
    entries.push(added(&exported(&entries)));
    assert_eq!(helpful(&entries), 1);
    // Nor does it matter what was learned since, or how often it is brought back.
    let old = exported(&entries);
    entries.push(entry(succeeded("r2", "Refund it", &["find", "refund"])));
    entries.push(added(&old));
    entries.push(added(&exported(&entries)));
    assert_eq!(helpful(&entries), 2);
    // What is known elsewhere of the same tools is news, once.
    let mut theirs = old.clone();
    theirs.helpful_count = 10;
    theirs.runs = vec![RunId::new("their-run").unwrap()];
    theirs.id = StrategyId::new("theirs").ok();
    entries.extend([added(&theirs), added(&theirs)]);
    assert_eq!(helpful(&entries), 12);
    entries.push(added(&exported(&entries)));
    assert_eq!(helpful(&entries), 12);
    entries.push(entry(succeeded("r3", "Refund it", &["find", "refund"])));
    entries.push(added(&exported(&entries)));
    assert_eq!(helpful(&entries), 13);
}

#[test]
fn what_is_brought_back_after_it_was_taken_back_is_there_again() {
    let mut entries: Vec<Evidence> = (0..5)
        .map(|run| entry(succeeded(&format!("r{run}"), "Refund it", &["refund"])))
        .collect();
    let mut line = fold(&entries).strategies[0].strategy.clone();
    line.runs = (0..5)
        .map(|run| RunId::new(format!("r{run}")).unwrap())
        .collect();
    entries.push(Evidence::Reverted { to: 1, at: at(6) });
    entries.push(added(&line));
    assert_eq!(fold(&entries).strategies[0].tally.helpful(), 5);
    entries.push(entry(succeeded("r9", "Refund it", &["refund"])));
    entries.push(added(&line));
    assert_eq!(fold(&entries).strategies[0].tally.helpful(), 6);
}

/// What a bullet is about, whatever its dress.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Meant {
    section: StrategySection,
    is_negated: bool,
    verb: &'static str,
    object: &'static str,
    days: u32,
}

#[derive(Debug, Clone)]
struct Written {
    meant: Meant,
    content: String,
    vote: Vote,
    is_pinned: bool,
}

fn any_bullet() -> impl Strategy<Value = Written> {
    let section = select(vec![StrategySection::Strategies, StrategySection::Pitfalls]);
    let verb = select(vec!["confirm", "ship"]);
    let object = select(vec!["address", "order"]);
    let vote = select(vec![Vote::Helpful, Vote::Harmful, Vote::Neutral]);
    (
        section,
        any::<bool>(),
        verb,
        object,
        1..3_u32,
        0..3_usize,
        vote,
        any::<bool>(),
    )
        .prop_map(
            |(section, is_negated, verb, object, days, dress, vote, is_pinned)| {
                let what = format!("{verb} the {object} within {days} days");
                let content = match (is_negated, dress) {
                    (false, 0) => format!("Do {what}"),
                    (false, 1) => format!("Please do {what}."),
                    (false, _) => format!("do {}", what.replace("the ", "")),
                    (true, 0) => format!("Do not {what}"),
                    (true, 1) => format!("Please don't {what}."),
                    (true, _) => format!("don’t {}!", what.replace("the ", "an ")),
                };
                let meant = Meant {
                    section,
                    is_negated,
                    verb,
                    object,
                    days,
                };
                Written {
                    meant,
                    content,
                    vote,
                    is_pinned,
                }
            },
        )
}

/// The entries that write the bullets, vote on them and pin some.
fn entries_of(written: &[Written]) -> Vec<Evidence> {
    let mut entries = Vec::new();
    for (number, bullet) in written.iter().enumerate() {
        let mut strategy = ToolCallingStrategy::new(bullet.meant.section, text(&bullet.content));
        let id = id_of(&strategy);
        strategy.id = Some(id.clone());
        entries.push(added(&strategy));
        // The number is part of what is generated, so the order of the bullets does not change it.
        let mut run = succeeded(
            &format!("r{number}-{}", bullet.content.len()),
            "Other",
            &["q"],
        );
        run.recalled = vec![Voted {
            strategy: id.clone(),
            followed: false,
            vote: bullet.vote,
        }];
        entries.push(entry(run));
        if bullet.is_pinned {
            entries.push(Evidence::Pinned {
                strategy: id,
                pinned: true,
                at: at(1),
            });
        }
    }
    entries
}

/// What each kept bullet means, with its counts and whether it is pinned.
fn kept_of(
    playbook: &Playbook,
    written: &[Written],
) -> BTreeMap<Meant, (u64, u64, bool, BTreeSet<StrategyId>)> {
    let mut kept = BTreeMap::new();
    for bullet in &playbook.strategies {
        if !bullet.strategy.tool_sequence().is_empty() {
            continue;
        }
        let mut means = written
            .iter()
            .filter(|one| one.content == bullet.strategy.content.as_str());
        let meant = means
            .find(|one| one.meant.section == bullet.strategy.section)
            .unwrap();
        let ids = bullet
            .strategy
            .aliases
            .iter()
            .chain([bullet.id()])
            .cloned()
            .collect();
        let figures = (
            bullet.tally.helpful(),
            bullet.tally.harmful(),
            bullet.strategy.pinned,
            ids,
        );
        let double = kept.insert(meant.meant.clone(), figures);
        assert_eq!(double, None, "the same stands twice");
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn merging_bullets_is_the_same_in_any_order_and_never_joins_what_differs(
        written in vec(any_bullet(), 1..10),
        order in any::<u64>(),
    ) {
        let entries = entries_of(&written);
        let kept = kept_of(&fold(&entries), &written);
        for bullet in &written {
            // One bullet for each thing meant, and no id of another in it.
            let (.., ids) = &kept[&bullet.meant];
            let mut strategy = ToolCallingStrategy::new(bullet.meant.section, text(&bullet.content));
            strategy.id = None;
            prop_assert!(ids.contains(&id_of(&strategy)));
            let said = written.iter().filter(|one| one.meant == bullet.meant);
            let harmful = said.clone().filter(|one| one.vote == Vote::Harmful).count() as u64;
            prop_assert_eq!(kept[&bullet.meant].1, harmful);
            prop_assert_eq!(kept[&bullet.meant].2, said.clone().any(|one| one.is_pinned));
        }
        let mut shuffled = entries.clone();
        crate::ab::Random::new(order).shuffle(&mut shuffled);
        // What people say of a bullet they say after it is there.
        shuffled.sort_by_key(|entry| matches!(entry, Evidence::Pinned { .. }));
        prop_assert_eq!(kept_of(&fold(&shuffled), &written), kept);
    }

    #[test]
    fn merging_what_was_merged_changes_nothing(written in vec(any_bullet(), 1..10)) {
        let mut entries = entries_of(&written);
        let once = fold(&entries);
        entries.extend(once.strategies.iter().map(|kept| added(&kept.strategy)));
        let twice = fold(&entries);
        prop_assert_eq!(counts(&twice), counts(&once));
        prop_assert_eq!(kept_of(&twice, &written), kept_of(&once, &written));
    }
}
