//! Which strategies a playbook recalls for a task.

use windlass_spec::StrategyLine;

use super::*;

fn strategy(content: &str, sequence: &[&str]) -> ToolCallingStrategy {
    let content = NonEmptyText::new(content).unwrap();
    let strategy = ToolCallingStrategy::new(StrategySection::Strategies, content);
    match sequence {
        [] => strategy,
        _ => {
            let sequence = sequence.iter().map(|tool| ToolName::new(*tool).unwrap());
            strategy.with_sequence(sequence.collect()).unwrap()
        }
    }
}

fn index(strategies: Vec<ToolCallingStrategy>) -> PlaybookIndex {
    let lines = strategies.into_iter().enumerate();
    PlaybookIndex::from_lines(&StrategyLines {
        strategies: lines
            .map(|(line, strategy)| StrategyLine {
                line: line + 1,
                strategy,
            })
            .collect(),
        ..StrategyLines::default()
    })
}

fn contents(found: &[StrategyMatch]) -> Vec<&str> {
    found.iter().map(|found| found.text.as_str()).collect()
}

const REFUND: &str = "Look the order up, then refund it.";

fn order_strategies() -> Vec<ToolCallingStrategy> {
    vec![
        strategy(REFUND, &["find_order", "refund"]),
        strategy("Look the order up before it is cancelled.", &[]),
        strategy("Cancel the order.", &["cancel_order"]),
        strategy("Water the plants in the garden.", &["water"]),
    ]
}

#[test]
fn most_similar_strategy_comes_first_and_dissimilar_ones_are_not_recalled() {
    let index = index(order_strategies());
    let found = index.recall(&RecallQuery::new("refund the order"));
    assert_eq!(found[0].text, REFUND);
    assert!(!contents(&found).iter().any(|text| text.contains("plants")));
    let none = index.recall(&RecallQuery::new("Translate this poem into Latin."));
    assert!(none.is_empty(), "{none:?}");
    assert!(index.recall(&RecallQuery::new("zzxqj")).is_empty());
}

#[test]
fn recall_returns_at_most_the_requested_count() {
    let index = index(order_strategies());
    for count in 0..3 {
        let query = RecallQuery {
            count,
            ..RecallQuery::new("refund or cancel the order")
        };
        assert_eq!(index.recall(&query).len(), count);
    }
}

#[test]
fn strategies_with_unavailable_tools_are_not_recalled() {
    let index = index(order_strategies());
    let query = RecallQuery {
        tools: Some(vec!["find_order", "cancel_order"]),
        ..RecallQuery::new("refund the order")
    };
    let found = index.recall(&query);
    assert!(
        !found.is_empty() && !contents(&found).contains(&REFUND),
        "{found:?}"
    );
}

#[test]
fn recall_filters_by_tool_sequence_tool_count_and_success_rate() {
    let mut strategies = order_strategies();
    strategies[0].helpful_count = 3;
    strategies[0].harmful_count = 1;
    let strategies = vec![
        strategies[0]
            .clone()
            .with_figures(Some(0.75), None)
            .unwrap(),
        strategies[1].clone(),
        strategies[2].clone().with_figures(Some(0.5), None).unwrap(),
    ];
    let index = index(strategies);
    let recalled = |change: fn(&mut RecallQuery<'_>)| {
        let mut query = RecallQuery::new("look up, cancel and refund the order");
        change(&mut query);
        let found = index.recall(&query);
        let mut tools: Vec<usize> = found.iter().map(|found| found.sequence.len()).collect();
        tools.sort_unstable();
        tools
    };
    assert_eq!(recalled(|_| {}), [0, 1, 2]);
    assert_eq!(
        recalled(|query| query.has_tool_sequence = Some(true)),
        [1, 2]
    );
    assert_eq!(recalled(|query| query.has_tool_sequence = Some(false)), [0]);
    assert_eq!(recalled(|query| query.max_tool_count = Some(1)), [0, 1]);
    assert_eq!(recalled(|query| query.min_success_rate = Some(0.6)), [2]);
}

/// A pitfall about a call that failed in this many runs.
fn warning(content: &str, sequence: &[&str], failures: u64) -> ToolCallingStrategy {
    let mut warning = strategy(content, sequence);
    warning.section = StrategySection::Pitfalls;
    warning.harmful_count = failures;
    warning
}

#[test]
fn pitfall_is_recalled_only_after_three_failures() {
    for (failures, is_warned) in [(2, false), (3, true)] {
        let cancel = warning(
            "Cancelling a refunded order fails.",
            &["cancel_order"],
            failures,
        );
        let index = index(vec![strategy(REFUND, &["find_order", "refund"]), cancel]);
        let found = index.recall(&RecallQuery::new("Refund the order, or cancel it."));
        let sections: Vec<StrategySection> = found.iter().map(|found| found.section).collect();
        let expected = match is_warned {
            true => vec![StrategySection::Strategies, StrategySection::Pitfalls],
            false => vec![StrategySection::Strategies],
        };
        assert_eq!(sections, expected, "after {failures}");
    }
}

#[test]
fn pitfalls_are_at_most_one_third_and_never_about_advised_tools() {
    let advised = strategy(REFUND, &["find_order", "refund"]);
    let of_refund = warning("Refunding the order twice fails.", &["refund"], 9);
    let others = ["cancel_order", "mail"].map(|tool| {
        let content = format!("Calling {tool} before the order is refunded fails.");
        warning(&content, &[tool], 9)
    });
    let index = index([vec![advised, of_refund], others.to_vec()].concat());
    let query = |count| RecallQuery {
        count,
        floor: 0.1,
        ..RecallQuery::new("Refund the order, cancel it, or mail.")
    };
    let last = |found: &[StrategyMatch]| -> Vec<String> {
        let warnings = found
            .iter()
            .filter(|found| found.section == StrategySection::Pitfalls);
        warnings
            .map(|found| found.sequence.last().unwrap().to_string())
            .collect()
    };
    assert_eq!(last(&index.recall(&query(3))).len(), 1);
    let mut of_many = last(&index.recall(&query(9)));
    of_many.sort_unstable();
    assert_eq!(of_many, ["cancel_order", "mail"], "not of `refund`");
}

#[test]
fn large_playbook_recalls_the_same_strategies() {
    let places = [
        "Berlin", "Paris", "Rome", "Oslo", "Madrid", "Vienna", "Prague",
    ];
    let things = [
        "a flight", "a hotel", "a car", "a table", "a train", "a boat", "a guide",
    ];
    let many = (0..MAX_UNINDEXED + 500).map(|number| {
        let (place, thing) = (places[number % 7], things[number / 7 % 7]);
        let content = format!("Book {thing} in {place} for guest {number}.");
        strategy(&content, &[&format!("tool_{number}")])
    });
    let mut many: Vec<ToolCallingStrategy> = many.collect();
    many.extend(order_strategies());
    let index = index(many);
    assert!(index.signs.is_some());
    let found = index.recall(&RecallQuery::new("refund the order"));
    assert_eq!(found[0].text, REFUND);
    let query = RecallQuery {
        tools: Some(vec!["tool_77"]),
        floor: 0.2,
        ..RecallQuery::new("Book a hotel in Rome.")
    };
    let found = index.recall(&query);
    let tools: Vec<&str> = found[0].sequence.iter().map(ToolName::as_str).collect();
    assert_eq!(
        tools,
        ["tool_77"],
        "the filter applies before the preselection"
    );
}
