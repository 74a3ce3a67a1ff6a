use std::time::Duration;

use super::*;

fn held() -> Hold {
    Hold::new(
        call(),
        identity("ada"),
        tool(),
        object(json!({"to": "bob"})),
        at(0),
        DEFAULT_UNDO_WINDOW,
    )
}

#[test]
fn held_call_starts_when_its_undo_window_is_over() {
    let mut hold = held();
    assert_eq!(hold.due_at(), at(10));
    assert_eq!(hold.start(at(9)), Err(HoldError::NotDue(at(10))));
    hold.start(at(10)).unwrap();
    assert_eq!(
        hold.start(at(11)),
        Err(HoldError::TooLate(HoldStatus::Started))
    );
}

#[test]
fn a_released_call_starts_at_once() {
    let mut hold = held();
    hold.release(&identity("bea"), at(1)).unwrap();
    hold.start(at(1)).unwrap();
    assert_eq!(hold.decided().unwrap().by, identity("bea").principal);
}

#[test]
fn an_undone_call_never_starts() {
    let mut hold = held();
    hold.undo(&identity("bea"), at(12)).unwrap();
    assert_eq!(
        hold.start(at(20)),
        Err(HoldError::TooLate(HoldStatus::Undone))
    );
    assert!(!hold.cancel(at(20)));
}

#[test]
fn released_or_started_call_cannot_be_undone() {
    let mut released = held();
    released.release(&identity("bea"), at(1)).unwrap();
    let mut started = held();
    started.start(at(10)).unwrap();
    let mut cancelled = held();
    assert!(cancelled.cancel(at(1)));
    for mut hold in [released, started, cancelled] {
        let status = hold.status();
        assert_eq!(
            hold.undo(&identity("bea"), at(11)),
            Err(HoldError::TooLate(status))
        );
        assert_eq!(
            hold.release(&identity("bea"), at(11)),
            Err(HoldError::TooLate(status))
        );
        assert!(
            HoldError::TooLate(status)
                .to_string()
                .contains("it is too late")
        );
    }
}

#[test]
fn principal_of_another_tenant_cannot_undo_or_release() {
    let mut hold = held();
    let outsider = TenantPrincipal::new(text("other"), identity("ada").principal);
    assert!(matches!(
        hold.undo(&outsider, at(1)),
        Err(HoldError::NotEntitled(_))
    ));
    assert!(matches!(
        hold.release(&outsider, at(1)),
        Err(HoldError::NotEntitled(_))
    ));
    assert_eq!(hold.status(), HoldStatus::Held);
}

#[test]
fn hold_round_trips_and_a_forged_one_is_refused() {
    let mut undone = held();
    undone.undo(&identity("bea"), at(1)).unwrap();
    let mut started = held();
    started.start(at(10)).unwrap();
    for hold in [held(), undone, started.clone()] {
        let written = serde_json::to_string(&hold).unwrap();
        assert_eq!(serde_json::from_str::<Hold>(&written).unwrap(), hold);
    }
    for (field, value) in [
        ("status", json!("held")),
        ("status", json!("undone")),
        ("tool_args", json!({"to": "eve"})),
        ("tool_name", json!("repay")),
        ("ended_at", json!(at(9).to_string())),
        ("ended_at", Value::Null),
    ] {
        let mut written = serde_json::to_value(&started).unwrap();
        written[field] = value;
        assert!(
            serde_json::from_value::<Hold>(written.clone()).is_err(),
            "{written}"
        );
    }
}

#[test]
fn longest_undo_window_does_not_overflow() {
    let hold = Hold::new(
        call(),
        identity("ada"),
        tool(),
        Map::new(),
        at(0),
        Duration::MAX,
    );
    assert!(hold.due_at() > at(0));
}
