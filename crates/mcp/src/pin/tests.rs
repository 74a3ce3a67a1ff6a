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
    reconcile(&[], offered, true, at(0))
}

#[test]
fn first_connection_pins_clean_tools_and_quarantines_suspicious_ones() {
    let offered = vec![
        tool("add", "Adds."),
        tool("evil", "Adds.<!-- and sends -->"),
        with(&tool("huge", ""), "_meta", json!("x".repeat(300_000))),
    ];
    let pins = reconcile(&[], offered, true, at(0));
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
        ["/description: an HTML comment at byte 5: and sends"]
    );
    assert_eq!(
        pins[2].findings,
        ["the definition has more than 262144 bytes"]
    );
}

#[test]
fn any_later_change_needs_approval() {
    let base = tool("add", "Adds.");
    let known = reconcile(&[], vec![base.clone()], true, at(0));
    for changed in [
        tool("add", "Adds!"),
        with(&base, "annotations", json!({"readOnlyHint": true})),
        with(&base, "outputSchema", json!({"type": "object"})),
        with(&base, "_meta", json!({"v": 2})),
        with(&base, "title", json!("Add")),
        with(&base, "icons", json!([])),
    ] {
        let pins = reconcile(&known, vec![changed], false, at(1));
        assert_eq!(states(&pins), [("add", PinState::Changed)]);
        assert_eq!(pins[0].usable(), None);
        assert_eq!(pins[0].accepted.as_ref(), Some(&base));
        assert_eq!((pins[0].accepted_at, pins[0].seen_at), (Some(at(0)), at(1)));
    }
    let poisoned = tool("add", "Adds.\u{200B}");
    let pins = reconcile(&known, vec![poisoned], false, at(1));
    assert_eq!(states(&pins), [("add", PinState::Quarantined)]);
}

#[test]
fn new_tools_need_approval_and_missing_tools_are_gone_until_they_return() {
    let known = first();
    let pins = reconcile(
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
    let back = reconcile(&pins, vec![tool("sub", "Subtracts.")], false, at(2));
    assert_eq!(
        states(&back),
        [("add", PinState::Gone), ("sub", PinState::Pinned)]
    );
    let other = reconcile(&pins, vec![tool("sub", "Destroys.")], false, at(2));
    assert_eq!(other[1].state(), PinState::Changed);
}

#[test]
fn tools_are_accepted_on_the_first_connection_only() {
    let pins = reconcile(&first(), vec![tool("mul", "Multiplies.")], true, at(1));
    assert_eq!(pins[1].state(), PinState::New);
    // A server counts as known even if all its tools are suspicious.
    let known = reconcile(&[], vec![tool("evil", "\u{200B}")], true, at(0));
    let pins = reconcile(&known, vec![tool("evil", "Harmless.")], true, at(1));
    assert_eq!(pins[0].state(), PinState::New);
}

#[test]
fn the_formatting_of_json_is_not_a_change() {
    let read = |text: &str| serde_json::from_str::<Definition>(text).unwrap();
    let known = vec![read(
        r#"{"name":"a","inputSchema":{"type":"object","x":1}}"#,
    )];
    let known = reconcile(&[], known, true, at(0));
    let again = read(r#"{"inputSchema":{"x":1.0,"type":"object"},"name":"a"}"#);
    let pins = reconcile(&known, vec![again], false, at(1));
    assert_eq!(pins[0].state(), PinState::Pinned);
    assert_eq!(diff(&pins[0]), []);
}

#[test]
fn a_name_with_two_definitions_is_never_usable() {
    let (honest, other) = (tool("add", "Adds."), tool("add", "Sends."));
    let known = reconcile(&[], vec![honest.clone()], true, at(0));
    for offered in [
        vec![honest.clone(), other.clone()],
        vec![other.clone(), honest.clone()],
    ] {
        let pins = reconcile(&known, offered.clone(), false, at(1));
        assert_eq!(states(&pins), [("add", PinState::Quarantined)]);
        assert_eq!(
            pins[0].findings,
            ["the server offers 2 different tools with this name"]
        );
        // Accepting one does not help as long as both are offered.
        let offer = pins[0].offered.as_ref().unwrap();
        let accepted = accept(&pins[0], &digest(offer), "ada", at(2)).unwrap();
        assert_eq!(
            reconcile(&[accepted], offered, false, at(3))[0].state(),
            PinState::Quarantined
        );
    }
    assert_eq!(
        reconcile(&[], vec![honest.clone(), other], true, at(0))[0].state(),
        PinState::Quarantined
    );
    let twice = reconcile(&known, vec![honest.clone(), honest], false, at(1));
    assert_eq!(states(&twice), [("add", PinState::Pinned)]);
}

#[test]
fn only_the_reviewed_definition_can_be_accepted() {
    let (second, third) = (tool("add", "Adds two."), tool("add", "Adds three."));
    let pins = reconcile(&first(), vec![second.clone()], false, at(1));
    let error = accept(&pins[0], &digest(&third), "ada", at(2)).unwrap_err();
    assert!(
        matches!(error, AcceptError::DigestDiffers { .. }),
        "{error}"
    );
    let accepted = accept(&pins[0], &digest(&second), "ada", at(2)).unwrap();
    assert_eq!(accepted.state(), PinState::Pinned);
    assert_eq!(accepted.accepted_by.as_deref(), Some("ada"));
    assert_eq!(accepted.accepted_at, Some(at(2)));
    // The previously accepted definition is no longer accepted.
    let back = reconcile(&[accepted], vec![tool("add", "Adds.")], false, at(3));
    assert_eq!(back[0].state(), PinState::Changed);
    let gone = reconcile(&first(), vec![], false, at(1));
    let error = accept(&gone[0], &digest(&second), "ada", at(2)).unwrap_err();
    assert_eq!(error, AcceptError::NotOffered("add".to_owned()));
}

#[test]
fn suspicious_definitions_can_be_accepted_and_out_of_bounds_ones_cannot() {
    let odd = tool("odd", "Adds.\u{AD}");
    let pins = reconcile(&[], vec![odd.clone()], true, at(0));
    let accepted = accept(&pins[0], &digest(&odd), "ada", at(1)).unwrap();
    assert_eq!(accepted.state(), PinState::Pinned);
    let again = reconcile(&[accepted], vec![odd], false, at(2));
    assert_eq!(
        (again[0].state(), again[0].findings.len()),
        (PinState::Pinned, 1)
    );
    let endless = with(
        &tool("x", ""),
        "inputSchema",
        json!({"type": "object", "$ref": "#"}),
    );
    let pins = reconcile(&[], vec![endless.clone()], true, at(0));
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
        pins = reconcile(&pins, offered, false, at(round));
        assert_eq!(pins.len(), 22);
    }
}

#[test]
fn differences_are_listed_by_location_with_hidden_text_visible() {
    let mut pins = first();
    let offered = json!({
        "name": "add",
        "description": "Adds.\u{1B}[8m",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}, "required": ["x", "y"]},
        "annotations": {"readOnlyHint": true},
    });
    pins = reconcile(
        &pins,
        vec![serde_json::from_value(offered).unwrap()],
        false,
        at(1),
    );
    let changes: Vec<String> = diff(&pins[0]).iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "/annotations/readOnlyHint\n  - false\n  + true",
            "/description\n  - \"Adds.\"\n  + \"Adds.⟨ESC⟩[8m\"",
            "/inputSchema/properties/y\n  + {\"type\":\"string\"}",
            "/inputSchema/required\n  - [\"x\"]\n  + [\"x\",\"y\"]",
        ]
    );
}

#[test]
fn the_difference_of_two_long_texts_is_shown() {
    let long = "word ".repeat(2_000);
    let known = reconcile(&[], vec![tool("add", &format!("{long}end"))], true, at(0));
    let pins = reconcile(
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
fn a_rename_is_detected() {
    let pins = reconcile(
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
    fn a_tool_is_usable_only_if_its_accepted_definition_is_offered(rounds in any_offers()) {
        let mut pins: Vec<Pin> = Vec::new();
        let mut accepted: BTreeMap<String, Digest> = BTreeMap::new();
        for (number, offered) in rounds.into_iter().enumerate() {
            let is_first = number == 0;
            let known = pins.len();
            pins = reconcile(&pins, offered.clone(), is_first, at(number as i64));
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
            // No offered tool is dropped.
            prop_assert!(offered.iter().all(|offer| pins.iter().any(|pin| pin.tool == offer.name())));
        }
    }

    #[test]
    fn reconciling_the_same_tools_changes_only_the_time(offered in proptest::collection::vec(any_tool(), 0..6)) {
        let once = reconcile(&[], offered.clone(), true, at(0));
        let mut twice = reconcile(&once, offered, false, at(1));
        for pin in &mut twice {
            pin.seen_at = at(0);
        }
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn there_are_differences_exactly_if_the_tool_is_not_pinned(before in any_tool(), after in any_tool()) {
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
