//! Tool search, compared with a brute-force search.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_embed::{Bm25Index, HybridParameters, StaticEmbedder, tool_text};

use super::{ToolIndex, ToolSelection, estimated_tokens};
use crate::ToolView;
use crate::rank::whole_text;

/// A tool with owned fields.
#[derive(Debug, Clone)]
struct Tool {
    name: String,
    description: String,
    schema: Value,
}

impl Tool {
    fn new(name: &str, description: &str, parameters: &[&str]) -> Self {
        let properties: serde_json::Map<String, Value> = parameters
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
            .collect();
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object", "properties": properties }),
        }
    }

    fn view(&self) -> ToolView<'_> {
        ToolView {
            name: &self.name,
            description: &self.description,
            input_schema: &self.schema,
        }
    }
}

fn index(tools: &[Tool]) -> ToolIndex {
    ToolIndex::build(tools.iter().map(Tool::view))
}

/// Twelve tools, some of them similar.
fn sample_tools() -> Vec<Tool> {
    [
        (
            "send_email",
            "Send an email message to a recipient",
            ["recipient", "body"],
        ),
        (
            "search_emails",
            "Search the mailbox for messages",
            ["query", "limit"],
        ),
        (
            "get_weather",
            "Get the current weather of a city",
            ["city", "unit"],
        ),
        (
            "get_forecast",
            "Get the weather forecast for the next days",
            ["city", "days"],
        ),
        (
            "book_flight",
            "Book a flight between two airports",
            ["origin", "destination"],
        ),
        (
            "book_hotel",
            "Reserve a hotel room for some nights",
            ["city", "nights"],
        ),
        (
            "convert_currency",
            "Convert an amount of money to another currency",
            ["amount", "currency"],
        ),
        (
            "stock_price",
            "Get the latest price of a stock",
            ["symbol", "exchange"],
        ),
        (
            "translate_text",
            "Translate a text to another language",
            ["text", "language"],
        ),
        (
            "create_event",
            "Create an event in the calendar",
            ["title", "start"],
        ),
        ("delete_file", "Delete a file for good", ["path", "force"]),
        (
            "run_query",
            "Run a SQL query on the database",
            ["sql", "database"],
        ),
    ]
    .map(|(name, description, parameters)| Tool::new(name, description, &parameters))
    .to_vec()
}

/// All tools with a positive score, scored one by one and sorted.
fn brute_force(tools: &[Tool], query: &str) -> Vec<(usize, f32)> {
    let embedder = StaticEmbedder::new();
    let words = Bm25Index::build(tools.iter().map(|tool| whole_text(&tool.view()))).scores(query);
    let mut scored: Vec<(usize, f32)> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            let text = tool_text(&tool.name, &tool.description);
            let similarity = embedder.embed(&text).cosine(&embedder.embed(query));
            let weight = HybridParameters::default().lexical_weight;
            (index, similarity + weight * words[index])
        })
        .filter(|(_, score)| *score > 0.0)
        .collect();
    scored.sort_by(|left, right| right.1.total_cmp(&left.1));
    scored
}

fn found(index: &ToolIndex, query: &str, limit: usize) -> Vec<(usize, f32)> {
    let hits = index.search(query, limit);
    hits.iter().map(|hit| (hit.index, hit.score)).collect()
}

#[test]
fn the_right_tool_is_among_the_first_three_and_mostly_first() {
    let index = index(&sample_tools());
    let requests = [
        ("write a mail to Ada that I am late", "send_email"),
        (
            "which messages did Grace send me about the contract",
            "search_emails",
        ),
        ("is it raining in Bergen right now", "get_weather"),
        (
            "how will the weather be during the next days in Rome",
            "get_forecast",
        ),
        ("I need to fly from Oslo to Paris", "book_flight"),
        ("find me a room in Vienna for three nights", "book_hotel"),
        ("how much is 100 dollars in euros", "convert_currency"),
        (
            "what is a share of Nvidia worth on the stock exchange",
            "stock_price",
        ),
        ("say this sentence in French, translated", "translate_text"),
        ("put a meeting with Bob into my calendar", "create_event"),
        ("remove the file old.log", "delete_file"),
        (
            "select all rows of the table users from the database",
            "run_query",
        ),
    ];
    let place = |(query, name): (&str, &str)| {
        let hits = index.search(query, 3);
        hits.iter().position(|hit| hit.name == name)
    };
    let places = requests.map(place);
    assert!(places.iter().all(Option::is_some), "{places:?}");
    let first = places.iter().filter(|place| **place == Some(0)).count();
    assert!(first >= 10, "{places:?}");
}

#[test]
fn search_agrees_with_brute_force() {
    let tools = sample_tools();
    let index = index(&tools);
    for query in [
        "weather",
        "book a hotel and a flight",
        "sql",
        "zzz",
        "",
        "the",
    ] {
        let all = brute_force(&tools, query);
        for limit in [0, 1, 3, 12, 100] {
            let wanted = &all[..limit.min(all.len())];
            assert_eq!(found(&index, query, limit), wanted, "{query} {limit}");
        }
    }
}

#[test]
fn an_updated_index_equals_a_new_index() {
    let mut tools = sample_tools();
    let mut updated = index(&tools);
    tools.remove(3);
    tools[2].description = "Tell how warm the sea is".to_owned();
    tools[5].schema = json!({ "type": "object", "properties": { "tide": {} } });
    tools.push(Tool::new(
        "ring_bell",
        "Ring the bell of the ship",
        &["times"],
    ));
    updated.update(tools.iter().map(Tool::view));
    let built = index(&tools);
    for query in [
        "how warm is the sea",
        "weather forecast",
        "tide",
        "ring the bell",
    ] {
        assert_eq!(
            found(&updated, query, 20),
            found(&built, query, 20),
            "{query}"
        );
    }
    assert!(updated.names().eq(built.names()));
    assert_eq!(
        updated.search("how warm is the sea", 1)[0].name,
        "get_weather"
    );
    assert!(updated.names().all(|name| name != "get_forecast"));
}

#[test]
fn all_tools_are_offered_in_their_order_if_they_fit() {
    let tools = sample_tools();
    let index = index(&tools);
    let all: usize = tools
        .iter()
        .map(|tool| estimated_tokens(&tool.view()))
        .sum();
    let selection = index.select("weather", all, &["run_query"]);
    assert_eq!(selection.offered, (0..12).collect::<Vec<_>>());
    assert!(selection.left_out.is_empty());
    assert_eq!(selection.tokens, all);
    assert_ne!(
        index.select("weather", all - 1, &[]).offered,
        selection.offered
    );
}

#[test]
fn required_tools_come_first_and_then_the_best() {
    let tools = sample_tools();
    let index = index(&tools);
    let three: usize = [9, 2, 3]
        .iter()
        .map(|&at: &usize| estimated_tokens(&tools[at].view()))
        .sum();
    let always = ["create_event", "no_such_tool", "create_event"];
    let ToolSelection {
        offered,
        left_out,
        tokens,
    } = index.select("weather in the city", three, &always);
    assert_eq!(offered[0], 9);
    assert_eq!(offered[1..], [2, 3]);
    assert_eq!(offered.len() + left_out.len(), 12);
    assert_eq!(tokens, three);
}

#[test]
fn the_token_estimate_covers_name_description_and_schema() {
    let tool = Tool::new("a", "b", &[]);
    // `a`, `b` and `{"type":"object","properties":{}}`.
    assert_eq!(
        estimated_tokens(&tool.view()),
        (35_usize * 2).div_ceil(7) + 8
    );
    let longer = Tool::new("a", "b", &["parameter"]);
    assert!(estimated_tokens(&longer.view()) > estimated_tokens(&tool.view()));
    let accents = Tool::new("a", "é", &[]);
    assert_eq!(
        estimated_tokens(&accents.view()),
        estimated_tokens(&tool.view())
    );
}

fn any_tool() -> impl Strategy<Value = Tool> {
    let parameter = "[a-z_]{0,8}";
    (
        "\\PC{0,20}",
        "\\PC{0,80}",
        proptest::collection::vec(parameter, 0..4),
    )
        .prop_map(|(name, description, parameters)| {
            let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
            Tool::new(&name, &description, &parameters)
        })
}

/// Random tools, some of which may be equal.
fn any_tools() -> impl Strategy<Value = Vec<Tool>> {
    let tool = prop_oneof![any_tool(), proptest::sample::select(sample_tools())];
    proptest::collection::vec(tool, 0..30)
}

fn any_query() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,60}", "(weather|book|the|file|mail| ){0,6}"]
}

proptest! {
    #[test]
    fn any_search_agrees_with_brute_force(tools in any_tools(), query in any_query(), limit in 0..40_usize) {
        let all = brute_force(&tools, &query);
        let index = index(&tools);
        let found = found(&index, &query, limit);
        prop_assert!(found.len() <= limit);
        prop_assert_eq!(&found[..], &all[..limit.min(all.len())]);
    }

    #[test]
    fn any_selection_stays_within_its_budget_and_loses_no_tool(
        tools in any_tools(), query in any_query(), budget in 0..1_000_usize,
    ) {
        let index = index(&tools);
        let always: Vec<&str> = tools.iter().rev().take(2).map(|tool| tool.name.as_str()).collect();
        let selection = index.select(&query, budget, &always);
        prop_assert_eq!(&selection, &index.select(&query, budget, &always));
        let cost = |list: &[usize]| list.iter().map(|&at| estimated_tokens(&tools[at].view())).sum::<usize>();
        prop_assert_eq!(selection.tokens, cost(&selection.offered));
        prop_assert!(selection.tokens <= budget);
        let mut all = [selection.offered.clone(), selection.left_out.clone()].concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..tools.len()).collect::<Vec<_>>());
        // No tool that was left out still fits.
        for &left in &selection.left_out {
            prop_assert!(selection.tokens + cost(&[left]) > budget);
        }
    }

    #[test]
    fn any_updated_index_equals_a_new_index(
        before in any_tools(), after in any_tools(), query in any_query(),
    ) {
        let mut updated = index(&before);
        updated.update(after.iter().map(Tool::view));
        prop_assert_eq!(found(&updated, &query, 50), found(&index(&after), &query, 50));
    }
}
