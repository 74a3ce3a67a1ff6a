//! How values are shown to a model, and how its mistakes are counted.

use serde_json::json;
use windlass_spec::{Timestamp, Turn};

use super::*;

fn transcript() -> Transcript {
    let settings = Settings {
        max_observation: 8,
        ..Settings::default()
    };
    Transcript::new(&settings, &Task::default())
}

fn answer() -> Answer {
    Answer {
        answer: "42".to_owned(),
        reasoning: String::new(),
        confidence: windlass_spec::Confidence::HALF,
    }
}

fn too_long() -> Event {
    Event::ModelFailed {
        turn: Turn::FIRST,
        kind: ModelErrorKind::ContextTooLong,
        message: "too long".to_owned(),
        at: Timestamp::from_microseconds(0),
    }
}

fn answered(transcript: &mut Transcript, summary: TurnSummary) {
    let event = Event::ModelAnswered {
        turn: Turn::FIRST,
        answer: crate::model::ModelAnswer::default(),
        at: Timestamp::from_microseconds(0),
    };
    transcript.apply(&event, Some(summary));
}

#[test]
fn long_values_are_cut_and_more_so_after_each_shortening() {
    let mut transcript = transcript();
    let value = json!("0123456789");
    assert_eq!(
        transcript.shown(&value),
        "01234567… (2 more characters are not shown)"
    );
    transcript.apply(&too_long(), None);
    assert_eq!(
        transcript.shown(&value),
        "0123… (6 more characters are not shown)"
    );
    transcript.apply(&too_long(), None);
    assert!(transcript.can_shorten());
    transcript.apply(&too_long(), None);
    assert!(!transcript.can_shorten(), "it cannot be shortened for ever");
}

#[test]
fn mistaken_turns_are_counted_until_a_valid_one() {
    let mut transcript = transcript();
    for _ in 0..2 {
        let mistaken = TurnSummary {
            mistakes: BTreeMap::from([(MistakeKind::EmptyAnswer, 1)]),
            ..TurnSummary::default()
        };
        answered(&mut transcript, mistaken);
    }
    assert_eq!(transcript.mistaken_turns(), 2);
    assert_eq!(transcript.mistakes()[&MistakeKind::EmptyAnswer], 2);
    let valid = TurnSummary {
        has_calls: true,
        ..TurnSummary::default()
    };
    answered(&mut transcript, valid);
    assert_eq!(transcript.mistaken_turns(), 0);
}

#[test]
fn first_answer_is_kept() {
    let mut transcript = transcript();
    for text in ["42", "43"] {
        let answer = Answer {
            answer: text.to_owned(),
            ..answer()
        };
        let finished = TurnSummary {
            answer: Some(answer),
            ..TurnSummary::default()
        };
        answered(&mut transcript, finished);
    }
    assert_eq!(transcript.answer(), Some(&answer()));
}
