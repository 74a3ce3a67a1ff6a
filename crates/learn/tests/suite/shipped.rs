//! The built-in intents, on phrases that are not among their examples.

use std::collections::HashSet;

use windlass_learn::intent::{DefinitionError, IntentClassifier, IntentDefinitions};

/// Written before the first evaluation. None of them is an example.
const HELD_OUT: [(&str, &str); 40] = [
    (
        "please summarize the minutes of the board meeting",
        "summarize",
    ),
    ("can you give me a summary of chapter four", "summarize"),
    ("sum up this blog post for me", "summarize"),
    ("what are the main points of the speech", "summarize"),
    ("tldr of this document", "summarize"),
    ("I want the short version of the report", "summarize"),
    ("recap the conversation we had in the channel", "summarize"),
    ("condense these notes into five bullet points", "summarize"),
    (
        "the gist of the article in two sentences please",
        "summarize",
    ),
    ("write a brief overview of the meeting", "summarize"),
    ("analyze the server logs for errors", "analyze"),
    ("find patterns in the customer data", "analyze"),
    ("compare the sales of both regions", "analyze"),
    ("what trends are there in the revenue numbers", "analyze"),
    ("evaluate the results of the experiment", "analyze"),
    (
        "investigate why the conversion rate dropped in May",
        "analyze",
    ),
    (
        "run an analysis of the support tickets by category",
        "analyze",
    ),
    ("check these figures for outliers", "analyze"),
    ("break down the costs by department", "analyze"),
    ("assess the performance of the new campaign", "analyze"),
    ("fetch the latest invoice of the customer", "fetch"),
    ("get the contents of the file report.txt", "fetch"),
    ("download the page https://windlass.example/docs", "fetch"),
    ("show me all open orders", "fetch"),
    ("search the web for cheap hotels in Rome", "fetch"),
    ("retrieve the last ten messages of the channel", "fetch"),
    ("look up the address of the Hamburg office", "fetch"),
    ("list the files in the downloads folder", "fetch"),
    ("find the email from Ada about the budget", "fetch"),
    ("pull the user records from the database", "fetch"),
    ("explain how a heat pump works", "explain"),
    ("what does this warning mean", "explain"),
    ("why is the ocean salty", "explain"),
    ("help me understand monads", "explain"),
    (
        "what is the difference between a virus and a bacterium",
        "explain",
    ),
    ("how does public key encryption work", "explain"),
    (
        "can you explain the reasoning behind the new policy",
        "explain",
    ),
    ("teach me the basics of chess openings", "explain"),
    ("in simple words, what is inflation", "explain"),
    ("walk me through the deployment process", "explain"),
];

/// None of these is an example either.
const OUT_OF_SCOPE: [&str; 20] = [
    "hi there",
    "thanks a lot, that was great",
    "I am so tired today",
    "my cat likes tuna",
    "turn off the lights in the kitchen",
    "play some jazz",
    "order a pizza with extra cheese",
    "happy birthday to you",
    "transfer 200 dollars to my savings account",
    "knock knock",
    "good night",
    "lol",
    "set an alarm for six o'clock",
    "call my mother",
    "I love rainy sundays",
    "delete my account",
    "asdf jkl",
    "42",
    "Ottokar walked slowly along the river bank",
    "book a table for two at eight",
];

fn trained() -> IntentClassifier {
    IntentDefinitions::shipped().unwrap().train().unwrap()
}

#[test]
fn shipped_intents_have_examples_tools_context_and_fallbacks() {
    let shipped = IntentDefinitions::shipped().unwrap();
    let names: Vec<&str> = shipped.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["analyze", "explain", "fetch", "summarize"]);
    let mut seen = HashSet::new();
    for (name, definition) in shipped.iter() {
        assert!(definition.examples.len() >= 25, "{name}");
        for example in &definition.examples {
            assert!(
                seen.insert(example.as_str().to_lowercase()),
                "duplicate: {example}"
            );
        }
        assert!(!definition.tools.is_empty(), "{name}");
        assert!(!definition.context.is_empty(), "{name}");
        assert!(!definition.fallbacks.is_empty(), "{name}");
    }
    for (phrase, _) in HELD_OUT {
        assert!(
            !seen.contains(&phrase.to_lowercase()),
            "{phrase} is an example"
        );
    }
}

#[test]
fn held_out_phrases_get_their_intent() {
    let classifier = trained();
    let wrong: Vec<_> = HELD_OUT
        .iter()
        .filter(|(text, name)| classifier.classify(text).intent != Some(name))
        .map(|(text, name)| (text, name, classifier.classify(text)))
        .collect();
    assert!(wrong.len() <= 1, "{} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn out_of_scope_phrases_get_no_intent() {
    let classifier = trained();
    let wrong: Vec<_> = OUT_OF_SCOPE
        .iter()
        .filter(|text| classifier.classify(text).intent.is_some())
        .map(|text| (text, classifier.classify(text)))
        .collect();
    assert!(wrong.len() <= 1, "{} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn own_definitions_extend_and_replace_the_shipped_ones() {
    let own = r#"
        [intents.greet]
        examples = ["hello", "hi there", "good morning", "hey, how are you", "greetings"]
        [intents.fetch]
        examples = ["bring it here"]
    "#;
    let both = IntentDefinitions::shipped()
        .unwrap()
        .with(IntentDefinitions::read(own).unwrap());
    assert_eq!(both.iter().count(), 5);
    assert_eq!(both.get("fetch").unwrap().examples.len(), 1);
    let classifier = both.train().unwrap();
    assert_eq!(classifier.classify("hi there").intent, Some("greet"));
}

#[test]
fn invalid_definitions_are_rejected() {
    let read_error = |text| IntentDefinitions::read(text).unwrap_err();
    assert!(
        matches!(read_error("[intents.a]\nexamples = []"), DefinitionError::NoExamples(name) if name == "a")
    );
    assert!(matches!(
        read_error("[intents.\"\"]\nexamples = [\"a\"]"),
        DefinitionError::NoName
    ));
    assert!(
        read_error("[intents.a]\nexample = []")
            .to_string()
            .contains("line 2")
    );
    assert!(
        read_error("[intents.a]\nexamples = [\" \"]")
            .to_string()
            .contains("it is empty")
    );
}
