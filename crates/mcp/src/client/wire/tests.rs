use serde_json::json;

use super::*;

#[test]
fn ids_are_found_in_pieces_of_json() {
    assert_eq!(ids(br#"{"jsonrpc":"2.0","id":5,"result":{"a"#), [5]);
    assert_eq!(ids(br#"xx"},"jsonrpc":"2.0","id" : "7"}"#), [7]);
    assert_eq!(ids(br#"{"id":null,"id":x"#), Vec::<i64>::new());
}

#[test]
fn notices_end_here_and_requests_pass() {
    let listing = Arc::new(Listing::new(Duration::ZERO, Duration::ZERO));
    let wire = Wire::new(Arc::clone(&listing), Limits::default());
    let is_taken = |message: Value| matches!(wire.take_in(message, false), Inbound::Taken);
    assert!(is_taken(
        json!({ "method": "notifications/message", "params": {} })
    ));
    assert!(is_taken(
        json!({ "method": "notifications/progress", "params": {} })
    ));
    assert!(is_taken(
        json!({ "method": "notifications/tools/list_changed" })
    ));
    assert!(!is_taken(
        json!({ "method": "notifications/cancelled", "params": {} })
    ));
    assert!(!is_taken(json!({ "id": 1, "method": "ping" })));
    assert!(!is_taken(json!({ "id": 1, "result": {} })));
    assert!(!is_taken(json!([])));
    assert_eq!(wire.unheard(), 1);
    assert_eq!(listing.generation(), 1);
}

#[test]
fn request_that_was_taken_back_is_never_sent() {
    let (flight, _questions) = Flight::new(true, None);
    assert!(flight.withdraw());
    assert!(!flight.move_on(QUEUED, SENT));
    assert!(!flight.is_sent());
    let (flight, _questions) = Flight::new(true, None);
    assert!(flight.move_on(QUEUED, SENT));
    assert!(!flight.withdraw());
}

#[test]
fn progress_is_thinned_out_and_its_end_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&told);
    let (flight, _questions) = Flight::new(
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
        flight.advance(progress, Duration::from_secs(60));
    }
    flight.tell_rest();
    flight.tell_rest();
    assert_eq!(*lock(&told), [0.0, 999.0]);
}
