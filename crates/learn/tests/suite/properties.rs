//! Properties that hold for any examples and any text.

use std::sync::LazyLock;

use proptest::prelude::*;
use windlass_learn::intent::{IntentClass, IntentClassifier, evaluate};

static KITCHEN: LazyLock<IntentClassifier> =
    LazyLock::new(|| IntentClassifier::train(&super::classify::kitchen_classes()).unwrap());

fn check(classifier: &IntentClassifier, text: &str) -> Result<(), TestCaseError> {
    let found = classifier.classify(text);
    let classes = classifier.classes();
    prop_assert_eq!(found.ranking.len(), classes.len().min(5));
    let shares: Vec<f32> = found
        .ranking
        .iter()
        .map(|candidate| candidate.share)
        .collect();
    prop_assert!(
        shares.iter().all(|share| (0.0..=1.0).contains(share)),
        "{:?}",
        shares
    );
    prop_assert!(shares.is_sorted_by(|left, right| left >= right));
    prop_assert!(shares.iter().sum::<f32>() <= 1.001);
    if let Some(intent) = found.intent {
        prop_assert_eq!(intent, found.ranking[0].name);
    }
    prop_assert!(found.confidence <= found.in_scope);
    prop_assert_eq!(&found, &classifier.classify(text));
    Ok(())
}

fn any_classes() -> impl Strategy<Value = Vec<IntentClass>> {
    let example = prop_oneof!["[a-e ]{1,12}x", "\\PC{0,20}y"];
    proptest::collection::vec(proptest::collection::vec(example, 1..6), 1..9).prop_map(|lists| {
        let named = lists.into_iter().enumerate();
        named
            .map(|(number, examples)| IntentClass {
                name: format!("class {number}"),
                examples,
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn any_text_is_classified(text in "\\PC{0,300}") {
        check(&KITCHEN, &text)?;
    }

    #[test]
    fn evaluating_any_file_does_not_panic(text in "(\\PC{0,20}\n){0,5}") {
        let _ = evaluate(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_classes_are_learned(classes in any_classes(), text in "[a-e ]{0,20}") {
        let classifier = IntentClassifier::train(&classes).unwrap();
        check(&classifier, &text)?;
        check(&classifier, &classes[0].examples[0])?;
    }
}

#[test]
fn only_the_beginning_of_long_texts_is_read() {
    let long = "set a timer for ten minutes ".repeat(100_000);
    assert_eq!(KITCHEN.classify(&long).intent, Some("timer"));
    let word = "timer".repeat(1_000_000);
    let _ = KITCHEN.classify(&word);
    let _ = KITCHEN.classify(&"é".repeat(100_000));
}
