//! Answers of tools: any JSON becomes a canonical answer, which stays the same when it is normalised again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use windlass_spec::Timestamp;
use windlass_spec::envelope::normalise;

fuzz_target!(|json: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(json) else {
        return;
    };
    let received_at = Timestamp::from_microseconds(0);
    let first = normalise(&json, received_at);
    let _ = (first.response.for_model(), first.response.for_operator());
    let written = serde_json::to_value(&first.response).expect("an answer can be written");
    let second = normalise(&written, received_at);
    assert_eq!(second.response, first.response);
    assert!(second.notices.is_empty());
});
