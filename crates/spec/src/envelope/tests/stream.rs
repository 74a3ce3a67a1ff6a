//! Frames and event streams.

use proptest::prelude::*;
use serde_json::json;

use crate::envelope::{FrameError, FrameReader, Progress, StreamFrame, read_frames};

fn frames(text: &str) -> Vec<StreamFrame> {
    read_frames(text).into_iter().map(Result::unwrap).collect()
}

fn example() -> Vec<StreamFrame> {
    vec![
        StreamFrame::progress("Processing...", 1, 5).unwrap(),
        StreamFrame::content("Result data..."),
        StreamFrame::Done,
    ]
}

#[test]
fn frames_are_distinguished_by_type() {
    let json: Vec<_> = example()
        .iter()
        .map(|frame| serde_json::to_value(frame).unwrap())
        .collect();
    let expected = [
        json!({"type": "progress", "content": "Processing...", "step": 1, "total": 5}),
        json!({"type": "content", "content": "Result data..."}),
        json!({"type": "done"}),
    ];
    assert_eq!(json, expected);
}

#[test]
fn a_frame_is_one_event() {
    let text = example()[0].to_sse();
    let expected =
        "data: {\"type\":\"progress\",\"content\":\"Processing...\",\"step\":1,\"total\":5}\n\n";
    assert_eq!(text, expected);
    assert_eq!(StreamFrame::Done.to_sse(), "data: {\"type\":\"done\"}\n\n");
}

#[test]
fn data_lines_are_read_with_and_without_blank_lines_between() {
    let lines = [
        r#"data: {"type": "progress", "content": "Processing...", "step": 1, "total": 5}"#,
        r#"data: {"type": "content", "content": "Result data..."}"#,
        r#"data: {"type": "done"}"#,
    ];
    for between in ["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r"] {
        assert_eq!(frames(&lines.join(between)), example(), "{between:?}");
    }
}

#[test]
fn comments_other_fields_and_a_byte_order_mark_are_skipped() {
    let text = "\u{feff}data:{\"type\":\"done\"}\n\n: keep-alive\n\nevent: x\nid: 1\nretry: 5\n\n";
    assert_eq!(frames(text), [StreamFrame::Done]);
}

#[test]
fn a_frame_may_span_several_data_lines() {
    let text = "data: {\"type\":\ndata: \"done\"}\n\n";
    assert_eq!(frames(text), [StreamFrame::Done]);
}

#[test]
fn a_step_counts_from_one_to_the_total() {
    for (step, total) in [(0, 5), (6, 5), (0, 0), (1, 0)] {
        assert!(Progress::new("x", step, total).is_err());
        let json = json!({"type": "progress", "content": "x", "step": step, "total": total});
        let error = serde_json::from_value::<StreamFrame>(json).unwrap_err();
        let expected =
            format!("step {step} is not one of {total}; `step` counts from 1 to `total`");
        assert_eq!(error.to_string(), expected);
    }
    let last = Progress::new("x", 5, 5).unwrap();
    assert_eq!((last.content(), last.step(), last.total()), ("x", 5, 5));
}

#[test]
fn the_event_after_an_invalid_one_is_read() {
    let read = read_frames("data: [DONE]\n\ndata: {\"type\":\"done\"}\n\n");
    assert!(matches!(read[0], Err(FrameError::NotAFrame(_))), "{read:?}");
    assert_eq!(read[1..], [Ok(StreamFrame::Done)]);
}

#[test]
fn an_endless_event_is_one_error_and_the_next_is_read() {
    let mut reader = FrameReader::default();
    let mut read = reader.push(b"data: ");
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        read.extend(reader.push(&chunk));
    }
    read.extend(reader.push(b"\ndata: {\"type\":\"done\"}\n\ndata: {\"type\":\"done\"}\n\n"));
    assert_eq!(read, [Err(FrameError::TooLong), Ok(StreamFrame::Done)]);
}

fn any_frame() -> impl Strategy<Value = StreamFrame> {
    prop_oneof![
        (any::<String>(), 1..9_u32, 0..9_u32).prop_map(|(content, step, more)| {
            StreamFrame::progress(content, step, step + more).unwrap()
        }),
        any::<String>().prop_map(StreamFrame::content),
        Just(StreamFrame::Done),
    ]
}

proptest! {
    #[test]
    fn frames_are_received_from_chunks_of_any_size(
        sent in prop::collection::vec(any_frame(), 0..6),
        size in 1..40_usize,
    ) {
        let text: String = sent.iter().map(StreamFrame::to_sse).collect();
        let mut reader = FrameReader::default();
        let mut received = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            received.extend(reader.push(chunk));
        }
        received.extend(reader.finish());
        let received: Vec<_> = received.into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn arbitrary_bytes_do_not_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = FrameReader::default();
        reader.push(&bytes);
        reader.finish();
    }
}
