use std::time::Duration;

use proptest::prelude::*;
use windlass_config::{ConfigSource, Layer, load};
use windlass_spec::server::OAuth;

use super::*;

fn imported(text: &str) -> Vec<Imported> {
    import(text).unwrap()
}

fn one(text: &str) -> Imported {
    let mut all = imported(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The servers that a configuration loads from a section.
fn loaded(toml: &str) -> Vec<ServerSettings> {
    let source = ConfigSource {
        layer: Layer::Project,
        name: "windlass.toml".to_owned(),
        directory: "/project".into(),
        text: toml.to_owned(),
    };
    let loaded = load(&[source], [], &[]).unwrap_or_else(|mistakes| {
        let messages: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        panic!("{}\n{toml}", messages.join("\n"))
    });
    loaded.configuration.servers().to_vec()
}

fn command(imported: &Imported) -> &CommandTransport {
    match &imported.settings.as_ref().unwrap().transport {
        Transport::Command(command) => command,
        Transport::Http(_) => panic!("{imported:?}"),
    }
}

fn http(imported: &Imported) -> &HttpTransport {
    match &imported.settings.as_ref().unwrap().transport {
        Transport::Http(http) => http,
        Transport::Command(_) => panic!("{imported:?}"),
    }
}

#[test]
fn a_claude_desktop_file_is_imported() {
    let all = imported(
        r#"{"mcpServers": {
            "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/home/ada"]},
            "My GitHub": {"command": "docker", "args": ["run", "-i", "ghcr.io/github/server"],
                "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_abcdef", "LOG": "debug", "N": 5}, "disabled": true}
        }}"#,
    );
    assert_eq!(all[0].notes, Vec::<String>::new());
    assert_eq!(command(&all[0]).program, "npx");
    assert_eq!(command(&all[0]).arguments[2], "/home/ada");
    let github = all[1].settings.as_ref().unwrap();
    assert_eq!(
        (all[1].name.as_str(), github.name.as_str()),
        ("My GitHub", "my-github")
    );
    assert!(!github.is_enabled);
    let environment = &command(&all[1]).environment;
    assert_eq!(
        environment["GITHUB_PERSONAL_ACCESS_TOKEN"].to_string(),
        "env:GITHUB_PERSONAL_ACCESS_TOKEN"
    );
    assert_eq!(environment["LOG"].to_string(), "debug");
    assert_eq!(environment["N"].to_string(), "5");
    assert_eq!(
        all[1].notes,
        [
            "it is named `my-github` here",
            "it is disabled in the file, so it is imported as disabled",
            "`GITHUB_PERSONAL_ACCESS_TOKEN` looks like a secret and is not copied; put it into the variable `GITHUB_PERSONAL_ACCESS_TOKEN`",
        ]
    );
}

#[test]
fn a_vs_code_file_with_comments_and_inputs_is_imported() {
    let all = imported(
        r#"{
            // What is asked for when a server is started.
            "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true}],
            "servers": {
                "perplexity": { "type": "stdio", "command": "uvx", "args": ["server"], /* inside */
                    "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}", "HOME_PAGE": "${env:PAGE}"}, },
                "remote": {"type": "http", "url": "https://example.org/mcp // no comment",
                    "headers": {"Authorization": "Bearer ${env:REMOTE}"}},
                "fine": {"type": "http", "url": "https://example.org/mcp",
                    "headers": {"Authorization": "Bearer ${env:REMOTE}", "X-Api-Key": "${input:other}", "X": "a${env:B}c"}},
            },
        }"#,
    );
    let environment = &command(&all[0]).environment;
    assert_eq!(
        environment["PERPLEXITY_API_KEY"].to_string(),
        "env:PERPLEXITY_KEY"
    );
    assert_eq!(environment["HOME_PAGE"].to_string(), "env:PAGE");
    assert_eq!(
        all[0].notes,
        [
            "`uvx` runs the newest version on every start; pin a version",
            "`PERPLEXITY_API_KEY` was prompted for at the start of the server (Perplexity API Key); put it into the variable `PERPLEXITY_KEY`",
        ]
    );
    assert_eq!(all[1].settings, None);
    let headers = &http(&all[2]).headers;
    assert_eq!(headers["Authorization"].to_string(), "Bearer env:REMOTE");
    assert_eq!(headers["X-Api-Key"].to_string(), "env:OTHER");
    assert_eq!(headers["X"].to_string(), "env:FINE_X");
}

#[test]
fn secrets_are_not_copied() {
    let text = r#"{"mcpServers": {
        "a": {"url": "https://example.org/mcp?api_key=SECRET1&x=1", "headers": {"Authorization": "Bearer SECRET2", "X-Api-Key": "SECRET3"}},
        "b": {"command": "x", "args": ["--api-key=SECRET4", "--token", "SECRET5", "--header", "Authorization: Bearer SECRET6"],
              "env": {"API_KEY": "SECRET7", "DATABASE_URL": "postgres://u:SECRET8@db/x", "P": "env:SECRET9 x"}},
        "c": {"command": "x", "env": {"API_KEY": "SECRETC"}},
        "d": {"url": "https://u:SECRETD@example.org"},
        "e": {"url": "http://example.org", "headers": {"Cookie": "SECRETE"}},
        "f": {"command": "x", "env": {"API_KEY": "SECRET-${env:TAIL}"}}
    }}"#;
    let all = imported(text);
    let everything = format!("{all:?}");
    assert!(!everything.contains("SECRET"), "{everything}");
    let toml: String = all
        .iter()
        .filter_map(|one| Some(to_toml(one.settings.as_ref()?) + "\n"))
        .collect();
    assert!(!toml.contains("SECRET"), "{toml}");
    assert_eq!(
        http(&all[0]).headers["Authorization"].to_string(),
        "Bearer env:A_AUTHORIZATION"
    );
    // Two secrets with the same name get two variables.
    assert_eq!(
        command(&all[1]).environment["API_KEY"].variable(),
        Some("API_KEY")
    );
    assert_eq!(
        command(&all[2]).environment["API_KEY"].variable(),
        Some("C_API_KEY")
    );
    assert_eq!(
        (all[3].settings.as_ref(), all[4].settings.as_ref()),
        (None, None)
    );
    // A server that lost a secret without a variable is disabled.
    assert!(!all[0].settings.as_ref().unwrap().is_enabled);
    assert!(!all[1].settings.as_ref().unwrap().is_enabled);
    assert!(all[2].settings.as_ref().unwrap().is_enabled);
    // The result can be loaded.
    assert_eq!(loaded(&toml).len(), 4);
}

#[test]
fn settings_without_an_equivalent_get_a_note() {
    let all = imported(
        r#"{"mcpServers": {
            "old": {"type": "sse", "url": "https://example.org/sse"},
            "line": {"command": "npx -y thing", "autoApprove": ["x"], "timeout": 60, "envFile": ".env", "cwd": "/srv"},
            "place": {"command": "node", "args": ["${workspaceFolder}/server.js", 5, null]},
            "both": {"command": "x", "url": "https://example.org"},
            "neither": {}, "odd": 5, "ftp": {"url": "ftp://example.org"},
            "names": {"command": "x", "env": {"A-B": "x", "C": null}}
        }}"#,
    );
    let notes = |index: usize| all[index].notes.join("\n");
    assert!(notes(0).contains("old SSE transport"), "{}", notes(0));
    assert!(!all[0].settings.as_ref().unwrap().is_enabled);
    assert_eq!(command(&all[1]).arguments, ["-y", "thing"]);
    assert_eq!(command(&all[1]).directory, Some("/srv".into()));
    for note in [
        "shell command line",
        "`autoApprove` is not imported: risk, permissions and policies decide",
        "`timeout` is not",
        "`envFile` is not",
        "newest version",
    ] {
        assert!(notes(1).contains(note), "{}", notes(1));
    }
    assert_eq!(
        command(&all[2]).arguments,
        ["${workspaceFolder}/server.js", "5"]
    );
    assert!(
        notes(2).contains("`${workspaceFolder}` in its command is not replaced"),
        "{}",
        notes(2)
    );
    for imported in &all[3..=6] {
        assert_eq!(imported.settings, None);
        assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    }
    assert!(
        notes(7).contains("`A-B` is not a valid variable name"),
        "{}",
        notes(7)
    );
}

#[test]
fn names_are_made_valid_and_unique() {
    let text = r#"{"mcpServers": {"Time!": {"command": "a"}, "time": {"command": "b"}, "__TIME": {"command": "c"},
        "9lives": {"command": "d"}, "日本": {"command": "e"}, "a__b_": {"command": "f"},
        "a very long name that goes on and on": {"command": "g"}}}"#;
    let all = imported(text);
    let names: Vec<&str> = all
        .iter()
        .map(|one| one.settings.as_ref().unwrap().name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "time",
            "time-2",
            "time-3",
            "s9lives",
            "s",
            "a_b",
            "a-very-long-name-that"
        ]
    );
}

#[test]
fn a_file_without_servers_is_an_error() {
    assert!(matches!(import("{"), Err(ImportError::NotJson(_))));
    assert_eq!(import("{}"), Err(ImportError::NoServers));
    assert_eq!(import("[]"), Err(ImportError::NoServers));
    assert_eq!(import("{\"mcpServers\": []}"), Err(ImportError::NoServers));
    assert_eq!(imported("{\"mcp\": {\"servers\": {}}}"), []);
}

#[test]
fn a_server_is_written_as_readable_toml() {
    let text = r#"{"mcpServers": {"time": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"], "env": {"TOKEN": "abcdef", "A": "b\"c"}}}}"#;
    assert_eq!(
        to_toml(one(text).settings.as_ref().unwrap()),
        "[servers.time]\ncommand = \"mcp-server-time\"\narguments = [\"--local-timezone\", \"UTC\"]\n\n\
         [servers.time.environment]\nA = \"b\\\"c\"\nTOKEN = \"env:TOKEN\"\n"
    );
}

fn any_given() -> impl Strategy<Value = BTreeMap<String, EnvTemplate>> {
    let value = prop_oneof![
        "[ -~äé☃]{0,12}",
        Just("Bearer env:VAR".to_owned()),
        Just("env:X".to_owned())
    ];
    let value = value.prop_filter_map("not a valid value", |text| {
        let is_secret = windlass_spec::server::looks_secret("x", &text);
        EnvTemplate::new(&text).ok().filter(|_| !is_secret)
    });
    proptest::collection::btree_map("X_[A-E]{1,6}", value, 0..4)
}

fn any_text() -> impl Strategy<Value = String> {
    "[ -~äé☃\u{7F}\n\t]{0,12}"
}

fn any_settings() -> impl Strategy<Value = ServerSettings> {
    let command = (
        "/[a-z]{1,8}",
        proptest::collection::vec(any_text(), 0..4),
        proptest::option::of("/[a-z \"]{0,7}x"),
        any_given(),
        proptest::collection::vec("/[a-z'\"]{1,8}", 0..3),
    );
    let command = command.prop_map(|(program, arguments, directory, environment, parts)| {
        Transport::Command(CommandTransport {
            program,
            arguments,
            directory: directory.map(PathBuf::from),
            environment,
            parts: parts.into_iter().map(PathBuf::from).collect(),
            access: Default::default(),
        })
    });
    let oauth = (
        proptest::option::of("[!-~]{1,9}"),
        proptest::option::of(Just(EnvTemplate::new("env:SECRET").unwrap())),
        proptest::collection::vec("[!-~]{1,9}", 0..3),
    );
    let oauth = oauth.prop_map(|(client_id, client_secret, scopes)| OAuth {
        client_id,
        client_secret,
        scopes,
    });
    let http = (any_given(), proptest::option::of(oauth));
    let http = http.prop_map(|(headers, oauth)| {
        let url = "https://example.org/mcp?x=\"1\"".to_owned();
        Transport::Http(HttpTransport {
            url,
            headers,
            oauth,
        })
    });
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), 1..600_u64);
    ("[a-z][a-z0-9-]{0,20}", prop_oneof![command, http], switches).prop_map(
        |(name, transport, (is_enabled, is_trusted, may_sample, seconds))| ServerSettings {
            is_enabled,
            is_trusted,
            may_sample,
            start_timeout: Duration::from_secs(seconds),
            ..ServerSettings::new(ServerName::new(name).unwrap(), transport)
        },
    )
}

proptest! {
    #[test]
    fn written_settings_are_loaded_unchanged(settings in any_settings()) {
        prop_assert_eq!(loaded(&to_toml(&settings)), vec![settings]);
    }

    #[test]
    fn import_never_panics(text in "[{}\\[\\]\",:/*a-z$\\\\ \n]{0,60}") {
        let _ = import(&text);
    }

    #[test]
    fn imported_servers_can_be_loaded(
        name in "\\PC{0,40}", command in "\\PC{0,20}", argument in "\\PC{0,20}",
        key in "[A-Za-z_-]{0,10}", value in "[ -~]{0,20}", url in "https?://[a-z.@:?=&/]{0,20}",
    ) {
        let by_command = serde_json::json!({"command": command, "args": [argument], "env": {key.clone(): value.clone()}});
        let by_url = serde_json::json!({"url": url, "headers": {key: value}});
        let file = serde_json::json!({"mcpServers": {name: by_command, "url": by_url}});
        for one in imported(&file.to_string()) {
            if let Some(settings) = one.settings {
                prop_assert_eq!(loaded(&to_toml(&settings)).len(), 1);
            }
        }
    }
}
