//! Merging of strategies with equal tools or equal texts, and imports, which count once.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn text_entry(section: StrategySection, content: &str) -> PlaybookEntry {
    PlaybookEntry::Added {
        strategy: Box::new(ToolCallingStrategy::new(section, text(content))),
        at: at(0),
    }
}

#[test]
fn equal_texts_are_merged_but_never_across_sections() {
    let playbook = fold(&[
        text_entry(
            StrategySection::Strategies,
            "Ask for the order number first",
        ),
        text_entry(
            StrategySection::Strategies,
            "Please ask for an order number first.",
        ),
        text_entry(StrategySection::Pitfalls, "Ask for the order number first"),
    ]);
    assert_eq!(playbook.strategies.len(), 2);
    assert_eq!(playbook.strategies[0].strategy.aliases.len(), 1);
    assert_eq!(
        playbook.strategies[1].strategy.section,
        StrategySection::Pitfalls
    );
}

#[test]
fn adding_the_same_strategy_again_does_not_change_counts() {
    let mut strategy = ToolCallingStrategy::new(StrategySection::Strategies, text("Do it"))
        .with_sequence(tools(&["a", "b"]))
        .unwrap();
    strategy.helpful_count = 15;
    strategy.harmful_count = 2;
    let added = PlaybookEntry::Added {
        strategy: Box::new(strategy.clone()),
        at: at(0),
    };
    let once = fold(std::slice::from_ref(&added));
    let twice = fold(&[added.clone(), added.clone()]);
    assert_eq!(once.strategies[0].tally.helpful(), 15);
    assert_eq!(twice.strategies[0].tally, once.strategies[0].tally);
    // The same tools under another id come from another playbook: the counts add up.
    strategy.id = StrategyId::new("theirs").ok();
    let theirs = PlaybookEntry::Added {
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
fn texts_with_different_meanings_are_not_merged() {
    let assert_not_merged = |one: &str, two: &str| {
        let section = StrategySection::Strategies;
        let playbook = fold(&[text_entry(section, one), text_entry(section, two)]);
        assert_eq!(playbook.strategies.len(), 2, "{one} / {two}");
    };
    assert_not_merged("Always confirm the address", "Never confirm the address");
    assert_not_merged("Confirm the address", "Do not confirm the address");
    assert_not_merged("Do confirm the address", "Don't confirm the address");
    assert_not_merged("You can ship it", "You can't ship it");
    assert_not_merged("Refund within 14 days", "Refund within 30 days");
    assert_not_merged("Refund within 1.5 days", "Refund within 15 days");
    assert_not_merged("Below -5 degrees, stop", "Below 5 degrees, stop");
    assert_not_merged("Refund before you ship", "Ship before you refund");
    assert_not_merged("Send it from Rome to Oslo", "Send it to Rome from Oslo");
    assert_not_merged("Call Ada first", "Call Grace first");
}

#[test]
fn merged_texts_keep_the_settings_of_both() {
    let section = StrategySection::Observations;
    let mut entries = vec![
        text_entry(section, "Do not ship orders on Sundays."),
        text_entry(section, "Please don't ship the order on Sunday"),
    ];
    let id = |entry: &PlaybookEntry| match entry {
        PlaybookEntry::Added { strategy, .. } => id_of(strategy),
        _ => unreachable!(),
    };
    let (first, second) = (id(&entries[0]), id(&entries[1]));
    let disabled = |strategy: &StrategyId, is_off: bool| PlaybookEntry::Disabled {
        strategy: strategy.clone(),
        disabled: is_off,
        at: at(1),
    };
    entries.push(disabled(&second, true));
    entries.push(PlaybookEntry::Pinned {
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
    assert_eq!(kept.status, StrategyStatus::Disabled);
    assert!(kept.strategy.pinned);
    // A later setting of the remaining strategy wins.
    entries.push(disabled(&first, false));
    assert_eq!(fold(&entries).strategies[0].status, StrategyStatus::Active);
}

fn added(line: &ToolCallingStrategy) -> PlaybookEntry {
    PlaybookEntry::Added {
        strategy: Box::new(line.clone()),
        at: at(7),
    }
}

#[test]
fn exported_and_reimported_counts_are_counted_once() {
    let mut entries = vec![entry(succeeded("r1", "Refund it", &["find", "refund"]))];
    let exported = |entries: &[PlaybookEntry]| fold(entries).strategies[0].strategy.clone();
    let helpful = |entries: &[PlaybookEntry]| fold(entries).strategies[0].tally.helpful();
    entries.push(added(&exported(&entries)));
    assert_eq!(helpful(&entries), 1);
    // Runs since the export and repeated imports do not change that.
    let old = exported(&entries);
    entries.push(entry(succeeded("r2", "Refund it", &["find", "refund"])));
    entries.push(added(&old));
    entries.push(added(&exported(&entries)));
    assert_eq!(helpful(&entries), 2);
    // Counts of another playbook for the same tools are added once.
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
fn import_after_a_revert_restores_the_reverted_counts() {
    let mut entries: Vec<PlaybookEntry> = (0..5)
        .map(|run| entry(succeeded(&format!("r{run}"), "Refund it", &["refund"])))
        .collect();
    let mut line = fold(&entries).strategies[0].strategy.clone();
    line.runs = (0..5)
        .map(|run| RunId::new(format!("r{run}")).unwrap())
        .collect();
    entries.push(PlaybookEntry::Reverted { to: 1, at: at(6) });
    entries.push(added(&line));
    assert_eq!(fold(&entries).strategies[0].tally.helpful(), 5);
    entries.push(entry(succeeded("r9", "Refund it", &["refund"])));
    entries.push(added(&line));
    assert_eq!(fold(&entries).strategies[0].tally.helpful(), 6);
}

/// The meaning of a strategy text, independent of its wording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TextMeaning {
    section: StrategySection,
    is_negated: bool,
    verb: &'static str,
    object: &'static str,
    days: u32,
}

#[derive(Debug, Clone)]
struct GeneratedText {
    meaning: TextMeaning,
    content: String,
    vote: Vote,
    is_pinned: bool,
}

fn any_text() -> impl Strategy<Value = GeneratedText> {
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
            |(section, is_negated, verb, object, days, wording, vote, is_pinned)| {
                let what = format!("{verb} the {object} within {days} days");
                let content = match (is_negated, wording) {
                    (false, 0) => format!("Do {what}"),
                    (false, 1) => format!("Please do {what}."),
                    (false, _) => format!("do {}", what.replace("the ", "")),
                    (true, 0) => format!("Do not {what}"),
                    (true, 1) => format!("Please don't {what}."),
                    (true, _) => format!("don’t {}!", what.replace("the ", "an ")),
                };
                let meaning = TextMeaning {
                    section,
                    is_negated,
                    verb,
                    object,
                    days,
                };
                GeneratedText {
                    meaning,
                    content,
                    vote,
                    is_pinned,
                }
            },
        )
}

/// The entries that add the texts, vote on them and pin some.
fn entries_of(written: &[GeneratedText]) -> Vec<PlaybookEntry> {
    let mut entries = Vec::new();
    for (number, bullet) in written.iter().enumerate() {
        let mut strategy = ToolCallingStrategy::new(bullet.meaning.section, text(&bullet.content));
        let id = id_of(&strategy);
        strategy.id = Some(id.clone());
        entries.push(added(&strategy));
        // The run id depends on the generated text, so the order of the texts does not change it.
        let mut run = succeeded(
            &format!("r{number}-{}", bullet.content.len()),
            "Other",
            &["q"],
        );
        run.recalled = vec![StrategyVote {
            strategy: id.clone(),
            followed: false,
            vote: bullet.vote,
        }];
        entries.push(entry(run));
        if bullet.is_pinned {
            entries.push(PlaybookEntry::Pinned {
                strategy: id,
                pinned: true,
                at: at(1),
            });
        }
    }
    entries
}

/// The meaning of each kept text, with its counts and whether it is pinned.
fn kept_of(
    playbook: &Playbook,
    written: &[GeneratedText],
) -> BTreeMap<TextMeaning, (u64, u64, bool, BTreeSet<StrategyId>)> {
    let mut kept = BTreeMap::new();
    for bullet in &playbook.strategies {
        if !bullet.strategy.tool_sequence().is_empty() {
            continue;
        }
        let mut matching = written
            .iter()
            .filter(|one| one.content == bullet.strategy.content.as_str());
        let found = matching
            .find(|one| one.meaning.section == bullet.strategy.section)
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
        let double = kept.insert(found.meaning.clone(), figures);
        assert_eq!(double, None, "duplicate text");
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn merging_texts_is_independent_of_order_and_never_joins_different_meanings(
        written in vec(any_text(), 1..10),
        order in any::<u64>(),
    ) {
        let entries = entries_of(&written);
        let kept = kept_of(&fold(&entries), &written);
        for bullet in &written {
            // One strategy for each meaning, with the ids of all its texts.
            let (.., ids) = &kept[&bullet.meaning];
            let mut strategy = ToolCallingStrategy::new(bullet.meaning.section, text(&bullet.content));
            strategy.id = None;
            prop_assert!(ids.contains(&id_of(&strategy)));
            let equal = written.iter().filter(|one| one.meaning == bullet.meaning);
            let harmful = equal.clone().filter(|one| one.vote == Vote::Harmful).count() as u64;
            prop_assert_eq!(kept[&bullet.meaning].1, harmful);
            prop_assert_eq!(kept[&bullet.meaning].2, equal.clone().any(|one| one.is_pinned));
        }
        let mut shuffled = entries.clone();
        crate::ab::Random::new(order).shuffle(&mut shuffled);
        // A strategy can be pinned only after it was added.
        shuffled.sort_by_key(|entry| matches!(entry, PlaybookEntry::Pinned { .. }));
        prop_assert_eq!(kept_of(&fold(&shuffled), &written), kept);
    }

    #[test]
    fn merging_is_idempotent(written in vec(any_text(), 1..10)) {
        let mut entries = entries_of(&written);
        let once = fold(&entries);
        entries.extend(once.strategies.iter().map(|kept| added(&kept.strategy)));
        let twice = fold(&entries);
        prop_assert_eq!(counts(&twice), counts(&once));
        prop_assert_eq!(kept_of(&twice, &written), kept_of(&once, &written));
    }
}
