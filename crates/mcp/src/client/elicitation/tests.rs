use serde_json::json;

use super::*;

fn form(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

#[test]
fn fields_for_secrets_are_found_by_name_title_description_and_format() {
    for field in [
        json!({ "password": { "type": "string" } }),
        json!({ "userPassword": { "type": "string" } }),
        json!({ "API_KEY": { "type": "string" } }),
        json!({ "apiKey": { "type": "string" } }),
        json!({ "x": { "type": "string", "title": "API key" } }),
        json!({ "x": { "type": "string", "description": "Your GitHub access token" } }),
        json!({ "x": { "type": "string", "format": "password" } }),
        json!({ "x": { "type": "string", "writeOnly": true } }),
        json!({ "pin": { "type": "integer" } }),
        json!({ "cvv": { "type": "string" } }),
        json!({ "x": { "type": "string", "title": "Card-number" } }),
        json!({ "clientSecret": { "type": "string" } }),
        json!({ "aws_credentials": { "type": "string" } }),
        json!({ "fine": { "type": "string" }, "x": { "type": "string", "title": "Passwort" } }),
        json!({ "x": { "type": "object", "properties": { "token": { "type": "string" } } } }),
        json!({ "x": { "type": "array", "items": { "type": "string", "title": "passphrase" } } }),
    ] {
        assert!(asks_for_secret(&form(field.clone())).is_some(), "{field}");
    }
}

#[test]
fn a_field_that_only_seems_to_be_a_choice_is_checked() {
    let text = || json!({ "type": "string" });
    let of = |key: &str, branches: Value| json!({ "x": { "title": "Password", key: branches } });
    for field in [
        of("enum", json!([])),
        of("anyOf", json!([text(), { "type": "null" }])),
        of("oneOf", json!([{ "const": "none" }, text()])),
        of("anyOf", json!([])),
        of("anyOf", json!([{ "type": "null" }])),
        of("allOf", json!([text()])),
        json!({ "password": { "anyOf": [text(), { "type": "null" }] } }),
        json!({ "password": true }),
        json!({ "password": { "type": "array", "items": text() } }),
    ] {
        assert!(asks_for_secret(&form(field.clone())).is_some(), "{field}");
    }
}

#[test]
fn branches_and_references_are_checked() {
    let secret = || json!({ "type": "string", "description": "Your API key" });
    for part in [
        json!({ "anyOf": [{ "type": "integer" }, secret()] }),
        json!({ "oneOf": [{ "const": "none" }, secret()] }),
        json!({ "allOf": [{ "type": "string" }, secret()] }),
        json!({ "anyOf": [{ "properties": { "y": secret() } }] }),
        json!({ "enum": ["a"], "properties": { "y": secret() } }),
        json!({ "type": "object", "additionalProperties": secret() }),
        json!({ "$ref": "#/$defs/key" }),
        json!({ "$ref": "https://example.com/schema" }),
        json!({ "if": {}, "then": secret() }),
        json!({ "patternProperties": { ".*": secret() } }),
    ] {
        let mut form = form(json!({ "x": part }));
        form["$defs"] = json!({ "key": secret() });
        assert!(asks_for_secret(&form).is_some(), "{form}");
    }
    let mut cyclic = form(json!({ "x": { "$ref": "#/$defs/round" } }));
    cyclic["$defs"] = json!({ "round": { "$ref": "#/$defs/round" } });
    assert!(asks_for_secret(&cyclic).is_some(), "a cycle ends");
}

#[test]
fn obfuscated_words_are_found() {
    for title in [
        "pаssword",         // Cyrillic а
        "p\u{200b}assword", // zero width
        "p a s s w o r d",
        "ＰＡＳＳＷＯＲＤ",
        "P@ssword",
        "API\u{2011}KEY",
    ] {
        let form = form(json!({ "x": { "type": "string", "title": title } }));
        assert!(asks_for_secret(&form).is_some(), "{title}");
    }
}

#[test]
fn harmless_fields_are_allowed() {
    let harmless = form(json!({
        "name": { "type": "string", "title": "Your name" },
        "colour": { "type": "string", "enum": ["red", "secret blue"] },
        "max_tokens": { "type": "integer", "description": "How many tokens at most" },
        "pin_message": { "type": "boolean", "title": "Pin the message?" },
        "shipping": { "type": "string", "description": "Where to ship it; opinions welcome" },
        "email": { "type": "string", "format": "email" },
        "keyboard": { "type": "string", "title": "Keyboard layout" },
        "token_limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
        "max_tokens_": { "type": ["integer", "null"] },
        "send_password_reminder": { "anyOf": [{ "type": "boolean" }, { "type": "null" }] },
        "secret_santa": { "oneOf": [{ "const": "a", "title": "My secret" }, { "const": "b" }] },
        "token_kinds": { "type": "array", "items": { "enum": ["short", "long"] } },
    }));
    assert_eq!(asks_for_secret(&harmless), None);
}

#[test]
fn a_form_that_is_too_large_to_check_is_refused() {
    let fields: Map<String, Value> = (0..600)
        .map(|n| (format!("field{n}"), json!({ "type": "string" })))
        .collect();
    assert!(asks_for_secret(&form(Value::Object(fields))).is_some());
    let mut deep = json!({ "type": "string" });
    for _ in 0..50 {
        deep = json!({ "type": "array", "items": deep });
    }
    assert!(asks_for_secret(&deep).is_some());
}

#[test]
fn a_message_that_asks_for_a_secret_is_refused() {
    let params = json!({
        "message": "Please enter your API key",
        "requestedSchema": form(json!({ "value": { "type": "string" } })),
    });
    assert!(read(&params, &Limits::default()).is_err());
}

#[test]
fn field_names_with_line_breaks_or_hidden_characters_are_refused() {
    for name in [
        "name\n  risk              none",
        "na\u{200b}me",
        "na\u{1b}[2Jme",
    ] {
        let params = json!({
            "message": "Who are you?",
            "requestedSchema": form(json!({ name: { "type": "string" } })),
        });
        assert!(read(&params, &Limits::default()).is_err(), "{name:?}");
    }
}

#[test]
fn only_http_and_https_urls_are_shown() {
    let limits = Limits::default();
    let with = |url: &str| {
        read(
            &json!({ "mode": "url", "message": "go", "url": url }),
            &limits,
        )
    };
    assert!(with("https://example.com/a?b=c").is_ok());
    for url in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "$(touch x)",
        "https://",
        "https://exa mple.com",
        "https://example.com/\u{202e}cod.exe",
        "",
    ] {
        assert!(with(url).is_err(), "{url}");
    }
    assert!(with(&format!("https://example.com/{}", "a".repeat(3_000))).is_err());
}

#[test]
fn long_messages_are_truncated_and_control_characters_escaped() {
    let params = json!({
        "message": format!("\u{1b}[31m{}", "x".repeat(10_000)),
        "requestedSchema": form(json!({})),
    });
    let Ok(Elicitation::Form { message, .. }) = read(&params, &Limits::default()) else {
        panic!("the elicitation is not a form");
    };
    assert!(message.starts_with("\\u{1b}[31m"));
    assert!(message.chars().count() < 4_010);
}
