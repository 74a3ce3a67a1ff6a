//! Journals: rows that can be read are written as the same rows, and folding any of them gives a run or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_core::run::{Event, Run};

fuzz_target!(|text: &str| {
    let rows = text.lines().map(serde_json::from_str::<Event>);
    let Ok(events) = rows.collect::<Result<Vec<Event>, _>>() else {
        return;
    };
    for event in &events {
        let written = serde_json::to_string(event).expect("an event can be written");
        let read: Event = serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(&read, event);
    }
    if let Ok(run) = Run::fold(&events) {
        let _ = (
            run.next(),
            run.end_or_waiting(),
            run.response(),
            run.usage(),
        );
    }
});
