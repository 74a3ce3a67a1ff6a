//! What is recalled of a playbook, and what is not.

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
    PlaybookIndex::of_lines(&StrategyLines {
        strategies: lines
            .map(|(line, strategy)| StrategyLine {
                line: line + 1,
                strategy,
            })
            .collect(),
        ..StrategyLines::default()
    })
}

fn contents(found: &[Recalled]) -> Vec<&str> {
    found.iter().map(|found| found.text.as_str()).collect()
}

const REFUND: &str = "Look the order up, then refund it.";

fn shop() -> Vec<ToolCallingStrategy> {
    vec![
        strategy(REFUND, &["find_order", "refund"]),
        strategy("Look the order up before it is cancelled.", &[]),
        strategy("Cancel the order.", &["cancel_order"]),
        strategy("Water the plants in the garden.", &["water"]),
    ]
}

#[test]
fn what_is_most_like_the_task_comes_first_and_what_is_not_like_it_never() {
    let index = index(shop());
    let found = index.recall(&RecallQuery::new("refund the order"));
    assert_eq!(found[0].text, REFUND);
    assert!(!contents(&found).iter().any(|text| text.contains("plants")));
    let none = index.recall(&RecallQuery::new("Translate this poem into Latin."));
    assert!(none.is_empty(), "{none:?}");
    assert!(index.recall(&RecallQuery::new("zzxqj")).is_empty());
}

#[test]
fn no_more_are_recalled_than_are_asked_for() {
    let index = index(shop());
    for count in 0..3 {
        let query = RecallQuery {
            count,
            ..RecallQuery::new("refund or cancel the order")
        };
        assert_eq!(index.recall(&query).len(), count);
    }
}

#[test]
fn strategies_with_tools_that_are_not_there_are_not_recalled() {
    let index = index(shop());
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
fn recall_can_be_limited_by_tools_their_number_and_success() {
    let mut shop = shop();
    shop[0].helpful_count = 3;
    shop[0].harmful_count = 1;
    let shop = vec![
        shop[0].clone().with_figures(Some(0.75), None).unwrap(),
        shop[1].clone(),
        shop[2].clone().with_figures(Some(0.5), None).unwrap(),
    ];
    let index = index(shop);
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

#[test]
fn of_very_many_strategies_the_same_are_recalled() {
    let places = [
        "Berlin", "Paris", "Rome", "Oslo", "Madrid", "Vienna", "Prague",
    ];
    let things = [
        "a flight", "a hotel", "a car", "a table", "a train", "a boat", "a guide",
    ];
    let many = (0..COMPARED_WHOLE + 500).map(|number| {
        let (place, thing) = (places[number % 7], things[number / 7 % 7]);
        let content = format!("Book {thing} in {place} for guest {number}.");
        strategy(&content, &[&format!("tool_{number}")])
    });
    let mut many: Vec<ToolCallingStrategy> = many.collect();
    many.extend(shop());
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
    assert_eq!(tools, ["tool_77"], "however far down it is");
}
