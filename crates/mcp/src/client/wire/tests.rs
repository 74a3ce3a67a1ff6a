use serde_json::json;

use super::*;

#[test]
fn ids_are_found_in_partial_json() {
    assert_eq!(ids(br#"{"jsonrpc":"2.0","id":5,"result":{"a"#), [5]);
    assert_eq!(ids(br#"xx"},"jsonrpc":"2.0","id" : "7"}"#), [7]);
    assert_eq!(ids(br#"{"id":null,"id":x"#), Vec::<i64>::new());
}

#[test]
fn notifications_are_consumed_and_requests_are_passed_on() {
    let listing = Arc::new(Listing::new(Duration::ZERO, Duration::ZERO));
    let wire = Wire::new(Arc::clone(&listing), Limits::default());
    let is_consumed = |message: Value| matches!(wire.receive(message, false), Inbound::Consumed);
    assert!(is_consumed(
        json!({ "method": "notifications/message", "params": {} })
    ));
    assert!(is_consumed(
        json!({ "method": "notifications/progress", "params": {} })
    ));
    assert!(is_consumed(
        json!({ "method": "notifications/tools/list_changed" })
    ));
    assert!(!is_consumed(
        json!({ "method": "notifications/cancelled", "params": {} })
    ));
    assert!(!is_consumed(json!({ "id": 1, "method": "ping" })));
    assert!(!is_consumed(json!({ "id": 1, "result": {} })));
    assert!(!is_consumed(json!([])));
    assert_eq!(wire.ignored(), 1);
    assert_eq!(listing.generation(), 1);
}

#[test]
fn a_withdrawn_request_is_never_sent() {
    let (pending, _elicitations) = PendingRequest::new(true, None);
    assert!(pending.withdraw());
    assert!(!pending.transition(QUEUED, SENT));
    assert!(!pending.is_sent());
    let (pending, _elicitations) = PendingRequest::new(true, None);
    assert!(pending.transition(QUEUED, SENT));
    assert!(!pending.withdraw());
}

#[test]
fn progress_is_throttled_and_the_last_report_is_delivered() {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&reported);
    let (pending, _elicitations) = PendingRequest::new(
        true,
        Some(Arc::new(move |progress: Progress| {
            lock(&into).push(progress.done);
        })),
    );
    for n in 0..1_000u32 {
        let progress = Progress {
            done: n.into(),
            total: None,
            message: None,
        };
        pending.report_progress(progress, Duration::from_secs(60));
    }
    pending.report_held_back();
    pending.report_held_back();
    assert_eq!(*lock(&reported), [0.0, 999.0]);
}
