//! How values are shown to a model, and how its mistakes are counted.

use serde_json::json;

use super::*;

fn transcript() -> Transcript {
    Transcript::new(&Settings {
        max_observation: 8,
        ..Settings::default()
    })
}

fn answer() -> Answer {
    Answer {
        answer: "42".to_owned(),
        reasoning: String::new(),
        confidence: windlass_spec::Confidence::HALF,
    }
}

#[test]
fn long_values_are_cut_and_more_so_after_each_shortening() {
    let mut transcript = transcript();
    let value = json!("0123456789");
    assert_eq!(
        transcript.shown(&value),
        "01234567… (2 more characters are not shown)"
    );
    assert!(transcript.shorten());
    assert_eq!(
        transcript.shown(&value),
        "0123… (6 more characters are not shown)"
    );
    assert!(transcript.shorten() && transcript.shorten());
    assert!(!transcript.shorten(), "it cannot be shortened for ever");
}

#[test]
fn mistaken_turns_are_counted_until_a_valid_one() {
    let mut transcript = transcript();
    let mistakes = || BTreeMap::from([(MistakeKind::EmptyAnswer, 1)]);
    transcript.apply(false, mistakes(), None);
    transcript.apply(false, mistakes(), None);
    assert_eq!(transcript.mistaken_turns(), 2);
    assert_eq!(transcript.mistakes()[&MistakeKind::EmptyAnswer], 2);
    transcript.apply(true, BTreeMap::new(), None);
    assert_eq!(transcript.mistaken_turns(), 0);
}

#[test]
fn first_answer_is_kept() {
    let mut transcript = transcript();
    transcript.apply(false, BTreeMap::new(), Some(answer()));
    let other = Answer {
        answer: "43".to_owned(),
        ..answer()
    };
    transcript.apply(false, BTreeMap::new(), Some(other));
    assert_eq!(transcript.answer(), Some(&answer()));
}
