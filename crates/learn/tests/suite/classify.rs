//! Classes learned from examples.

use windlass_learn::intent::{IntentClass, IntentClassifier, TrainError};

pub(crate) fn class(name: &str, examples: &[&str]) -> IntentClass {
    IntentClass {
        name: name.to_owned(),
        examples: examples.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// Three classes with six examples each.
pub(crate) fn kitchen_classes() -> Vec<IntentClass> {
    vec![
        class(
            "timer",
            &[
                "set a timer for ten minutes",
                "wake me in half an hour",
                "start a countdown of 90 seconds",
                "remind me when five minutes are over",
                "timer for the eggs please",
                "how much time is left on the timer",
            ],
        ),
        class(
            "recipe",
            &[
                "how do I make pancakes",
                "give me a recipe for tomato soup",
                "what can I cook with rice and beans",
                "find a dish with chicken",
                "what are the ingredients of a carbonara",
                "show me how to bake bread",
            ],
        ),
        class(
            "shopping",
            &[
                "put milk on the shopping list",
                "we are out of butter, add it to the list",
                "what do I need to buy",
                "remove eggs from the shopping list",
                "add two onions to my groceries",
                "read me the grocery list",
            ],
        ),
    ]
}

#[test]
fn classifier_learns_from_six_examples_per_class() {
    let classifier = IntentClassifier::train(&kitchen_classes()).unwrap();
    for (text, name) in [
        ("set the timer to twenty minutes", "timer"),
        ("start a timer of 15 minutes", "timer"),
        ("a recipe for potato soup, please", "recipe"),
        ("how do I cook lentils with rice", "recipe"),
        ("put flour and sugar on the shopping list", "shopping"),
        ("add bananas to the grocery list", "shopping"),
    ] {
        let found = classifier.classify(text);
        assert_eq!(found.intent, Some(name), "{text}: {found:?}");
        assert_eq!(found.ranking[0].name, name);
        assert_eq!(found.ranking.len(), 3);
    }
}

#[test]
fn unrelated_texts_are_out_of_scope() {
    let classifier = IntentClassifier::train(&kitchen_classes()).unwrap();
    let accepted: Vec<_> = [
        "who won the election in Peru",
        "translate good morning to Finnish",
        "the quarterly tax return is overdue",
        "is my car insured in Switzerland",
        "how tall is the Eiffel tower",
        "my password does not work any more",
        "play the new album of the band",
        "transfer money to my sister",
    ]
    .into_iter()
    .filter(|text| classifier.classify(text).intent.is_some())
    .collect();
    // Six examples per class define its boundary only roughly.
    assert!(accepted.len() <= 1, "{accepted:?}");
    for nothing in ["xqzt wvvk", "!?", ""] {
        let found = classifier.classify(nothing);
        assert_eq!(found.intent, None, "{nothing}: {found:?}");
        assert!(found.in_scope.get() < 0.5);
    }
}

#[test]
fn example_has_a_higher_confidence_than_an_unrelated_text() {
    let classifier = IntentClassifier::train(&kitchen_classes()).unwrap();
    let own = classifier.classify("put milk on the shopping list");
    let near = classifier.classify("is there a list of songs about milk");
    assert!(own.confidence > near.confidence);
    assert!(own.in_scope > near.in_scope);
    assert!(own.confidence <= own.in_scope);
}

#[test]
fn training_is_deterministic() {
    let one = IntentClassifier::train(&kitchen_classes()).unwrap();
    let other = IntentClassifier::train(&kitchen_classes()).unwrap();
    for text in ["set a timer", "what is for dinner", "the moon"] {
        assert_eq!(one.classify(text), other.classify(text));
    }
}

#[test]
fn single_class_still_rejects_unrelated_texts() {
    let classifier = IntentClassifier::train(&kitchen_classes()[..1]).unwrap();
    assert_eq!(
        classifier.classify("set a timer for five minutes").intent,
        Some("timer")
    );
    assert_eq!(classifier.classify("capital city of Mongolia").intent, None);
}

#[test]
fn invalid_classes_are_rejected_by_name() {
    let refusal = |classes: &[IntentClass]| IntentClassifier::train(classes).unwrap_err();
    assert_eq!(refusal(&[]), TrainError::NoClasses);
    assert_eq!(
        refusal(&[class("a", &["x"]), class(" ", &["y"])]),
        TrainError::NoName(2)
    );
    assert_eq!(
        refusal(&[class("a", &["x"]), class("a", &["y"])]),
        TrainError::TwiceDefined("a".to_owned())
    );
    assert_eq!(
        refusal(&[class("a", &["x"]), class("b", &["...", ""])]).to_string(),
        "the class `b` has no example with a letter or digit"
    );
}

#[test]
fn one_example_per_class_is_accepted() {
    let classes = [
        class("hello", &["good morning"]),
        class("bye", &["see you later"]),
    ];
    let classifier = IntentClassifier::train(&classes).unwrap();
    assert_eq!(classifier.classify("good morning").ranking[0].name, "hello");
    assert_eq!(classifier.classify("see you").ranking[0].name, "bye");
}
