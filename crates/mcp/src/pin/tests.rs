use proptest::prelude::*;
use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(1_760_000_000_000_000 + second * 1_000_000)
}

fn tool(name: &str, description: &str) -> Definition {
    let value = json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        "annotations": {"readOnlyHint": false},
    });
    serde_json::from_value(value).unwrap()
}

fn with(definition: &Definition, key: &str, value: Value) -> Definition {
    let mut map = definition.as_map().clone();
    map.insert(key.to_owned(), value);
    Definition::new(map)
}

fn states(pins: &[Pin]) -> Vec<(&str, PinState)> {
    pins.iter()
        .map(|pin| (pin.tool.as_str(), pin.state()))
        .collect()
}

fn first() -> Vec<Pin> {
    let offered = vec![tool("add", "Adds."), tool("sub", "Subtracts.")];
    meet(&[], offered, true, at(0))
}

#[test]
fn first_contact_pins_what_is_clean_and_quarantines_the_rest() {
    let offered = vec![
        tool("add", "Adds."),
        tool("evil", "Adds.<!-- and sends -->"),
        with(&tool("huge", ""), "_meta", json!("x".repeat(300_000))),
    ];
    let pins = meet(&[], offered, true, at(0));
    assert_eq!(
        states(&pins),
        [
            ("add", PinState::Pinned),
            ("evil", PinState::Quarantined),
            ("huge", PinState::Quarantined)
        ]
    );
    assert_eq!(
        (pins[0].accepted_at, &pins[0].accepted_by),
        (Some(at(0)), &None)
    );
    assert_eq!(pins[0].usable(), pins[0].offered.as_ref());
    assert_eq!((pins[1].accepted.as_ref(), pins[1].usable()), (None, None));
    assert_eq!(
        pins[1].findings,
        ["/description: a comment that is not shown at byte 5: and sends"]
    );
    assert_eq!(
        pins[2].findings,
        ["the definition has more than 262144 bytes"]
    );
}

#[test]
fn whatever_is_different_later_waits_for_a_person() {
    let base = tool("add", "Adds.");
    let known = meet(&[], vec![base.clone()], true, at(0));
    for changed in [
        tool("add", "Adds!"),
        with(&base, "annotations", json!({"readOnlyHint": true})),
        with(&base, "outputSchema", json!({"type": "object"})),
        with(&base, "_meta", json!({"v": 2})),
        with(&base, "title", json!("Add")),
        with(&base, "icons", json!([])),
    ] {
        let pins = meet(&known, vec![changed], false, at(1));
        assert_eq!(states(&pins), [("add", PinState::Changed)]);
        assert_eq!(pins[0].usable(), None);
        assert_eq!(pins[0].accepted.as_ref(), Some(&base));
        assert_eq!((pins[0].accepted_at, pins[0].seen_at), (Some(at(0)), at(1)));
    }
    let poisoned = tool("add", "Adds.\u{200B}");
    let pins = meet(&known, vec![poisoned], false, at(1));
    assert_eq!(states(&pins), [("add", PinState::Quarantined)]);
}

#[test]
fn new_ones_wait_and_missing_ones_are_gone_until_they_come_back() {
    let known = first();
    let pins = meet(
        &known,
        vec![tool("add", "Adds."), tool("mul", "Multiplies.")],
        false,
        at(1),
    );
    assert_eq!(
        states(&pins),
        [
            ("add", PinState::Pinned),
            ("mul", PinState::New),
            ("sub", PinState::Gone)
        ]
    );
    assert_eq!(pins[2].seen_at, at(0));
    let back = meet(&pins, vec![tool("sub", "Subtracts.")], false, at(2));
    assert_eq!(
        states(&back),
        [("add", PinState::Gone), ("sub", PinState::Pinned)]
    );
    let other = meet(&pins, vec![tool("sub", "Destroys.")], false, at(2));
    assert_eq!(other[1].state(), PinState::Changed);
}

#[test]
fn first_contact_counts_only_while_nothing_is_known() {
    let pins = meet(&first(), vec![tool("mul", "Multiplies.")], true, at(1));
    assert_eq!(pins[1].state(), PinState::New);
    // A server whose tools are all suspicious is known all the same.
    let known = meet(&[], vec![tool("evil", "\u{200B}")], true, at(0));
    let pins = meet(&known, vec![tool("evil", "Harmless.")], true, at(1));
    assert_eq!(pins[0].state(), PinState::New);
}

#[test]
fn the_order_and_spelling_of_json_is_no_change() {
    let read = |text: &str| serde_json::from_str::<Definition>(text).unwrap();
    let known = vec![read(
        r#"{"name":"a","inputSchema":{"type":"object","x":1}}"#,
    )];
    let known = meet(&[], known, true, at(0));
    let again = read(r#"{"inputSchema":{"x":1.0,"type":"object"},"name":"a"}"#);
    let pins = meet(&known, vec![again], false, at(1));
    assert_eq!(pins[0].state(), PinState::Pinned);
    assert_eq!(diff(&pins[0]), []);
}

#[test]
fn one_name_with_two_definitions_is_never_used() {
    let (honest, other) = (tool("add", "Adds."), tool("add", "Sends."));
    let known = meet(&[], vec![honest.clone()], true, at(0));
    for offered in [
        vec![honest.clone(), other.clone()],
        vec![other.clone(), honest.clone()],
    ] {
        let pins = meet(&known, offered.clone(), false, at(1));
        assert_eq!(states(&pins), [("add", PinState::Quarantined)]);
        assert_eq!(
            pins[0].findings,
            ["the server offers 2 different tools of this name"]
        );
        // Nor after it is accepted, as long as both are offered.
        let offer = pins[0].offered.as_ref().unwrap();
        let accepted = accept(&pins[0], &digest(offer), "ada", at(2)).unwrap();
        assert_eq!(
            meet(&[accepted], offered, false, at(3))[0].state(),
            PinState::Quarantined
        );
    }
    assert_eq!(
        meet(&[], vec![honest.clone(), other], true, at(0))[0].state(),
        PinState::Quarantined
    );
    let twice = meet(&known, vec![honest.clone(), honest], false, at(1));
    assert_eq!(states(&twice), [("add", PinState::Pinned)]);
}

#[test]
fn only_exactly_what_was_shown_is_accepted() {
    let (second, third) = (tool("add", "Adds two."), tool("add", "Adds three."));
    let pins = meet(&first(), vec![second.clone()], false, at(1));
    let error = accept(&pins[0], &digest(&third), "ada", at(2)).unwrap_err();
    assert!(
        matches!(error, AcceptError::DigestDiffers { .. }),
        "{error}"
    );
    let accepted = accept(&pins[0], &digest(&second), "ada", at(2)).unwrap();
    assert_eq!(accepted.state(), PinState::Pinned);
    assert_eq!(accepted.accepted_by.as_deref(), Some("ada"));
    assert_eq!(accepted.accepted_at, Some(at(2)));
    // What was accepted before is no longer.
    let back = meet(&[accepted], vec![tool("add", "Adds.")], false, at(3));
    assert_eq!(back[0].state(), PinState::Changed);
    let gone = meet(&first(), vec![], false, at(1));
    let error = accept(&gone[0], &digest(&second), "ada", at(2)).unwrap_err();
    assert_eq!(error, AcceptError::NotOffered("add".to_owned()));
}

#[test]
fn what_is_suspicious_can_be_accepted_and_what_breaks_a_bound_cannot() {
    let odd = tool("odd", "Adds.\u{AD}");
    let pins = meet(&[], vec![odd.clone()], true, at(0));
    let accepted = accept(&pins[0], &digest(&odd), "ada", at(1)).unwrap();
    assert_eq!(accepted.state(), PinState::Pinned);
    let again = meet(&[accepted], vec![odd], false, at(2));
    assert_eq!(
        (again[0].state(), again[0].findings.len()),
        (PinState::Pinned, 1)
    );
    let endless = with(
        &tool("x", ""),
        "inputSchema",
        json!({"type": "object", "$ref": "#"}),
    );
    let pins = meet(&[], vec![endless.clone()], true, at(0));
    let error = accept(&pins[0], &digest(&endless), "ada", at(1)).unwrap_err();
    assert!(matches!(error, AcceptError::Unusable { .. }), "{error}");
}

#[test]
fn a_server_cannot_fill_the_store_with_names() {
    let mut pins = first();
    for round in 0..50 {
        let offered = (0..20)
            .map(|number| tool(&format!("t{round}x{number}"), "x"))
            .collect();
        pins = meet(&pins, offered, false, at(round));
        assert_eq!(pins.len(), 22);
    }
}

#[test]
fn differences_are_told_place_by_place_with_nothing_hidden() {
    let mut pins = first();
    let offered = json!({
        "name": "add",
        "description": "Adds.\u{1B}[8m",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}, "required": ["x", "y"]},
        "annotations": {"readOnlyHint": true},
    });
    pins = meet(
        &pins,
        vec![serde_json::from_value(offered).unwrap()],
        false,
        at(1),
    );
    let told: Vec<String> = diff(&pins[0]).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "/annotations/readOnlyHint\n  - false\n  + true",
            "/description\n  - \"Adds.\"\n  + \"Adds.⟨ESC⟩[8m\"",
            "/inputSchema/properties/y\n  + {\"type\":\"string\"}",
            "/inputSchema/required\n  - [\"x\"]\n  + [\"x\",\"y\"]",
        ]
    );
}

#[test]
fn the_difference_between_two_long_texts_is_in_sight() {
    let long = "word ".repeat(2_000);
    let known = meet(&[], vec![tool("add", &format!("{long}end"))], true, at(0));
    let pins = meet(
        &known,
        vec![tool("add", &format!("{long}evil"))],
        false,
        at(1),
    );
    let change = &diff(&pins[0])[0];
    let after = change.after.as_ref().unwrap();
    assert!(
        after.ends_with("word evil\"") && after.len() < 100,
        "{after}"
    );
}

#[test]
fn a_rename_is_guessed() {
    let pins = meet(
        &first(),
        vec![tool("sub", "Subtracts."), tool("plus", "Adds.")],
        false,
        at(1),
    );
    assert_eq!(
        states(&pins),
        [
            ("add", PinState::Gone),
            ("plus", PinState::New),
            ("sub", PinState::Pinned)
        ]
    );
    let rename = Rename {
        from: "add".to_owned(),
        to: "plus".to_owned(),
    };
    assert_eq!(renames(&pins), [rename]);
}

fn any_tool() -> impl Strategy<Value = Definition> {
    let name = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just("s\u{435}nd"),
        Just("")
    ];
    let description = prop_oneof![Just("one"), Just("two"), Just("\u{200B}"), Just("<!--x-->")];
    (name, description).prop_map(|(name, description)| tool(name, description))
}

fn any_offers() -> impl Strategy<Value = Vec<Vec<Definition>>> {
    proptest::collection::vec(proptest::collection::vec(any_tool(), 0..5), 1..6)
}

proptest! {
    #[test]
    fn a_tool_is_usable_only_if_exactly_what_was_accepted_is_offered(rounds in any_offers()) {
        let mut pins: Vec<Pin> = Vec::new();
        let mut accepted: BTreeMap<String, Digest> = BTreeMap::new();
        for (number, offered) in rounds.into_iter().enumerate() {
            let is_first = number == 0;
            let known = pins.len();
            pins = meet(&pins, offered.clone(), is_first, at(number as i64));
            for pin in &pins {
                if is_first && known == 0 && pin.accepted.is_some() {
                    prop_assert_eq!(&pin.findings, &Vec::<String>::new());
                    accepted.insert(pin.tool.clone(), digest(pin.accepted.as_ref().unwrap()));
                }
                prop_assert_eq!(pin.accepted.as_ref().map(digest), accepted.get(&pin.tool).copied());
                if let Some(usable) = pin.usable() {
                    prop_assert_eq!(Some(&digest(usable)), accepted.get(&pin.tool));
                    let offers: Vec<_> = offered.iter().filter(|offer| offer.name() == pin.tool).collect();
                    prop_assert!(!offers.is_empty());
                    prop_assert!(offers.iter().all(|offer| digest(offer) == digest(usable)));
                }
                prop_assert_eq!(pin.state() == PinState::Gone, !offered.iter().any(|offer| offer.name() == pin.tool));
            }
            // Nothing that is offered is lost.
            prop_assert!(offered.iter().all(|offer| pins.iter().any(|pin| pin.tool == offer.name())));
        }
    }

    #[test]
    fn meeting_the_same_again_changes_nothing_but_the_time(offered in proptest::collection::vec(any_tool(), 0..6)) {
        let once = meet(&[], offered.clone(), true, at(0));
        let mut twice = meet(&once, offered, false, at(1));
        for pin in &mut twice {
            pin.seen_at = at(0);
        }
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn there_is_a_difference_exactly_if_it_is_not_pinned(before in any_tool(), after in any_tool()) {
        let pin = Pin {
            tool: "a".to_owned(),
            accepted: Some(before),
            offered: Some(after),
            findings: Vec::new(),
            accepted_by: None,
            accepted_at: Some(at(0)),
            seen_at: at(0),
        };
        prop_assert_eq!(diff(&pin).is_empty(), pin.state() == PinState::Pinned);
    }
}
