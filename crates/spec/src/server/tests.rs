use super::*;

#[test]
fn server_names_are_short_and_lowercase() {
    for name in ["a", "time", "my-server_2", "a_b-c", &"x".repeat(32)] {
        assert_eq!(ServerName::new(name).unwrap().as_str(), name);
    }
    for name in [
        "",
        "A",
        "1a",
        "_a",
        "-a",
        "a_",
        "a__b",
        "a b",
        "a.b",
        "é",
        "a/b",
        &"x".repeat(33),
    ] {
        let error = ServerName::new(name).unwrap_err();
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn the_server_name_is_the_part_of_a_tool_name_before_the_first_separator() {
    for (server, tool) in [("a", "b"), ("a_b", "_c"), ("a", "__b")] {
        let full = format!("{}{SEPARATOR}{tool}", ServerName::new(server).unwrap());
        assert_eq!(full.split_once(SEPARATOR).unwrap().0, server);
    }
}

#[test]
fn a_variable_is_allowed_only_at_the_end() {
    let set = |name: &str| (name == "TOKEN").then(|| "t0p".to_owned());
    for (text, variable, value) in [
        ("plain", None, "plain"),
        ("", None, ""),
        ("env:TOKEN", Some("TOKEN"), "t0p"),
        ("Bearer env:TOKEN", Some("TOKEN"), "Bearer t0p"),
        // Without a blank before it, `env:` is part of a word.
        ("myenv:TOKEN", None, "myenv:TOKEN"),
    ] {
        let given = EnvTemplate::new(text).unwrap();
        assert_eq!(given.variable(), variable, "{text}");
        assert_eq!(given.value(set).unwrap(), value);
        assert_eq!(given.to_string(), text);
        assert_eq!(EnvTemplate::new(&given.to_string()).unwrap(), given);
    }
    for text in ["env:", "env:1A", "env:A-B", "Bearer env:A b"] {
        assert!(EnvTemplate::new(text).is_err(), "{text}");
    }
    let missing = EnvTemplate::new("env:NONE")
        .unwrap()
        .value(set)
        .unwrap_err();
    assert_eq!(missing, VariableNotSet("NONE".to_owned()));
}

#[test]
fn names_and_settings_serialize_as_texts() {
    let name: ServerName = serde_json::from_str("\"time\"").unwrap();
    assert_eq!(serde_json::to_string(&name).unwrap(), "\"time\"");
    assert!(serde_json::from_str::<ServerName>("\"a__b\"").is_err());
    let given: EnvTemplate = serde_json::from_str("\"Bearer env:A\"").unwrap();
    assert_eq!(serde_json::to_string(&given).unwrap(), "\"Bearer env:A\"");
    assert!(serde_json::from_str::<EnvTemplate>("\"env:\"").is_err());
}

#[test]
fn secrets_are_recognized_by_name_and_prefix() {
    for (name, text) in [
        ("authorization", "Basic dXNlcjpwYXNz"),
        ("X-Api-Key", "abcdef"),
        ("OPENAI_API_KEY", "abcdef"),
        ("AWS_ACCESS_KEY_ID", "abcdef"),
        ("GITHUB_TOKEN", "abcdef"),
        ("GITHUB_PERSONAL_ACCESS_TOKEN", "abcdef"),
        ("DB_PASSWORD", "abcdef"),
        ("PGPASSWORD", "abcdef"),
        ("Cookie", "session=1"),
        ("SECRET", "12345678"),
        ("ANYTHING", "sk-abcdef"),
        ("ANYTHING", "ghp_abcdef"),
        ("DATABASE_URL", "postgres://user:word@db.example/x"),
        ("NAME", "-----BEGIN PRIVATE KEY-----"),
    ] {
        assert!(looks_secret(name, text), "{name}={text}");
    }
    for (name, text) in [
        ("OPENAI_API_KEY", "env:OPENAI_API_KEY"),
        ("Authorization", "Bearer env:TOKEN"),
        ("MAX_TOKENS", "4000"),
        ("TOKEN_LIMIT", "500"),
        ("AUTH_ENABLED", "true"),
        ("AUTHOR", "Ada"),
        ("KEYBOARD", "de"),
        ("SORT_KEY_NAME", "created"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/key.json"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("TOKEN_URL", "https://example.org/token"),
        ("DATABASE_URL", "postgres://db.example/x"),
        ("DATABASE_URL", "postgres://user@db.example/x"),
        ("SECRET", ""),
        ("PATH", "/usr/bin"),
    ] {
        assert!(!looks_secret(name, text), "{name}={text}");
    }
}

#[test]
fn secret_arguments_returns_the_offset_of_each_secret() {
    let arguments = [
        "--api-key=abcdef",
        "--token",
        "abcdef",
        "abcdef",
        "-e",
        "API_KEY=abcdef",
        "--header",
        "Authorization: Bearer abcdef",
        "Authorization: ${AUTH}",
        "--max-tokens=500",
        "sk-abcdef",
        "https://example.org/token",
        "--token-file",
        "/run/token",
    ];
    let arguments = arguments.map(str::to_owned);
    let found = secret_arguments(&arguments);
    let expected = [
        Some(10),
        None,
        Some(0),
        None,
        None,
        Some(8),
        None,
        Some(14),
        None,
        None,
        Some(0),
        None,
        None,
        None,
    ];
    assert_eq!(found, expected);
}

#[test]
fn only_loopback_urls_may_be_unencrypted() {
    for url in [
        "https://example.org",
        "HTTPS://example.org",
        "http://localhost:8080/mcp",
        "http://127.0.0.1",
        "http://127.9.9.9:1",
        "http://[::1]:80/x",
    ] {
        assert!(!is_unencrypted(url), "{url}");
    }
    for url in [
        "http://example.org",
        "http://localhost.example.org",
        "http://127.0.0.1.example.org",
        "http://10.0.0.1",
        "http://[::2]",
        "http://localhost@example.org/",
        "http://example.org\\@localhost/",
        "http://",
    ] {
        assert!(is_unencrypted(url), "{url}");
    }
}
