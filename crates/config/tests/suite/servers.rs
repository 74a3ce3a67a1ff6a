//! The settings of MCP servers, and the mistakes in them.

use std::path::Path;
use std::time::Duration;

use windlass_config::{Layer, load};
use windlass_spec::server::{
    CommandTransport, HttpTransport, ServerName, ServerSettings, Transport,
};

use super::{configured, load_errors, load_warnings, project, render, source};

fn command(settings: &ServerSettings) -> &CommandTransport {
    match &settings.transport {
        Transport::Command(command) => command,
        Transport::Http(_) => panic!("{settings:?}"),
    }
}

fn http(settings: &ServerSettings) -> &HttpTransport {
    match &settings.transport {
        Transport::Http(http) => http,
        Transport::Command(_) => panic!("{settings:?}"),
    }
}

#[test]
fn all_settings_of_a_command_server_are_read() {
    let configuration = configured(
        r#"
[servers.time]
command = "bin/time server"
arguments = ["--zone", "", "$(whoami)", "a b"]
directory = "work"
environment = { LEVEL = "debug", API_KEY = "env:TIME_KEY", EMPTY = "" }
parts = ["lib", "/opt/shared"]
enabled = false
trusted = true
sampling = true
start_timeout_seconds = 5
"#,
    );
    let [time] = configuration.servers() else {
        panic!("{:?}", configuration.servers());
    };
    assert_eq!(time.name.as_str(), "time");
    assert!(!time.is_enabled && time.is_trusted && time.may_sample);
    assert_eq!(time.start_timeout, Duration::from_secs(5));
    let command = command(time);
    assert_eq!(command.program, "/project/bin/time server");
    assert_eq!(command.arguments, ["--zone", "", "$(whoami)", "a b"]);
    assert_eq!(
        command.directory.as_deref(),
        Some(Path::new("/project/work"))
    );
    assert_eq!(
        command.parts,
        [Path::new("/project/lib"), Path::new("/opt/shared")]
    );
    let environment: Vec<_> = command
        .environment
        .iter()
        .map(|(name, given)| (name.as_str(), given.to_string(), given.variable()))
        .collect();
    assert_eq!(
        environment,
        [
            ("API_KEY", "env:TIME_KEY".to_owned(), Some("TIME_KEY")),
            ("EMPTY", String::new(), None),
            ("LEVEL", "debug".to_owned(), None),
        ]
    );
}

#[test]
fn all_settings_of_a_url_server_are_read() {
    let configuration = configured(
        r#"
[servers.b]
url = "https://example.org/mcp"
headers = { Authorization = "Bearer env:TOKEN", X-Team = "blue" }
[servers.b.oauth]
client_id = "us"
client_secret = "env:SECRET"
scopes = ["read", "write"]
[servers.a]
url = "http://localhost:8080/mcp"
oauth = {}
"#,
    );
    let names: Vec<_> = configuration
        .servers()
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    let (a, b) = (
        http(&configuration.servers()[0]),
        http(&configuration.servers()[1]),
    );
    assert_eq!(a.oauth, Some(windlass_spec::server::OAuth::default()));
    assert_eq!(b.url, "https://example.org/mcp");
    assert_eq!(b.headers["Authorization"].variable(), Some("TOKEN"));
    let oauth = b.oauth.as_ref().unwrap();
    assert_eq!(oauth.client_id.as_deref(), Some("us"));
    assert_eq!(
        oauth.client_secret.as_ref().unwrap().variable(),
        Some("SECRET")
    );
    assert_eq!(oauth.scopes, ["read", "write"]);
}

#[test]
fn the_defaults_of_a_server_are_restrictive() {
    let configuration = configured("[servers.time]\ncommand = \"mcp-server-time\"");
    let time = &configuration.servers()[0];
    assert_eq!(command(time).program, "mcp-server-time");
    assert!(time.is_enabled && !time.is_trusted && !time.may_sample);
    assert_eq!(time.start_timeout, Duration::from_secs(60));
    assert_eq!(configured("").servers(), []);
}

#[test]
fn a_server_has_either_a_command_or_a_url() {
    assert_eq!(
        load_errors("[servers.time]\nenabled = true"),
        "windlass.toml:1:10: servers.time: a server needs a `command` or a `url`\n  \
         help: write command = \"...\" if it is a program, or url = \"https://...\""
    );
    assert_eq!(
        load_errors("[servers.time]\ncommand = \"x\"\nurl = \"https://example.org\""),
        "windlass.toml:3:1: servers.time.url: a server cannot have both a `command` and a `url`; the command is at windlass.toml:2\n  \
         help: remove one of the two"
    );
    let message =
        load_errors("[servers.time]\ncommand = \"x\"\nheaders = { A = \"b\" }\noauth = {}");
    assert!(
        message
            .contains("windlass.toml:3:1: servers.time.headers: is only for servers with a `url`"),
        "{message}"
    );
    assert!(
        message.contains("windlass.toml:4:1: servers.time.oauth: is only for servers with a `url`"),
        "{message}"
    );
    let message =
        load_errors("[servers.time]\nurl = \"https://example.org\"\narguments = []\nparts = []");
    assert!(
        message.contains("3:1: servers.time.arguments: is only for servers with a `command`"),
        "{message}"
    );
    assert!(
        message.contains("4:1: servers.time.parts: is only for servers with a `command`"),
        "{message}"
    );
}

#[test]
fn all_mistakes_of_servers_are_reported_at_once() {
    let message = load_errors(
        r#"
[servers.Time]
command = "x"
[servers.a]
comand = "x"
[servers.b]
command = 5
arguments = "--x"
start_timeout_seconds = 0
[servers.c]
url = "example.org"
[servers.d]
command = "npx -y some-server"
environment = { "A-B" = "x", API_TOKEN = "abcdef", N = 1234567, V = "env:1" }
[servers.tickets]
url = "https://user:word@example.org"
headers = { "a b" = "x", Host = "x", Mcp-Name = "x", authorization = "Bearer abcdef" }
oauth = { client_secret = "abcdef" }
[agents.helper]
servers = ["ticket", "zzz"]
"#,
    );
    for expected in [
        "2:10: servers.Time: `Time` is not a valid server name",
        "4:10: servers.a: a server needs a `command` or a `url`",
        "5:1: servers.a.comand: there is no such key\n  help: did you mean `command`?",
        "7:1: servers.b.command: expected a path, found the number 5",
        "8:1: servers.b.arguments: expected a list of strings, found the string \"--x\"\n  help: write a list: [\"--x\"]",
        "9:1: servers.b.start_timeout_seconds: 0 is not 1 to 600 seconds",
        "11:1: servers.c.url: `example.org` is not a URL that starts with http:// or https://",
        "13:1: servers.d.command: this is the name of one program, not a shell command, and must not contain spaces\n  \
         help: write arguments in their own key: command = \"npx\" and arguments = [\"-y\", \"some-server\"]",
        "servers.d.environment.A-B: `A-B` is not the name of an environment variable",
        "servers.d.environment.API_TOKEN: this looks like a secret; a configuration must not contain secrets\n  \
         help: put it into an environment variable and refer to that: API_TOKEN = \"env:NAME\"",
        "servers.d.environment.N: expected a string, found a number\n  help: write it in quotes, as a string",
        "servers.d.environment.V: `env:` must be followed by the name of an environment variable",
        "16:1: servers.tickets.url: a URL in a configuration must not contain a user or password",
        "servers.tickets.headers.\"a b\": `a b` is not the name of a header",
        "servers.tickets.headers.Host: the header `Host` is reserved by the protocol",
        "servers.tickets.headers.Mcp-Name: the header `Mcp-Name` is reserved by the protocol",
        "servers.tickets.headers.authorization: this looks like a secret; a configuration must not contain secrets\n  \
         help: put it into an environment variable and refer to that: authorization = \"Bearer env:NAME\"",
        "servers.tickets.oauth.client_secret: a configuration must not contain secrets",
        "agents.helper.servers[0]: there is no server `ticket`\n  help: did you mean `tickets`?",
        "agents.helper.servers[1]: there is no server `zzz`\n  help: known servers: `a`, `b`, `c`, `d`, `tickets`",
    ] {
        assert!(message.contains(expected), "{expected}\n---\n{message}");
    }
    // No secret is repeated.
    assert!(
        !message.contains("abcdef") && !message.contains("1234567"),
        "{message}"
    );
    let lines = message
        .lines()
        .filter(|line| line.starts_with("windlass.toml:"));
    assert_eq!(lines.count(), 20, "{message}");
}

#[test]
fn secrets_are_not_sent_unencrypted() {
    let server = |url: &str, rest: &str| format!("[servers.a]\nurl = \"{url}\"\n{rest}");
    let secret = "headers = { X-Key = \"env:KEY\" }";
    for rest in [secret, "oauth = {}", "[servers.a.oauth]\nscopes = [\"a\"]"] {
        assert_eq!(
            load_errors(&server("http://example.org/mcp", rest)),
            "windlass.toml:2:1: servers.a.url: this sends a secret unencrypted to another machine\n  \
             help: use https:// instead of http://"
        );
        configured(&server("https://example.org/mcp", rest));
        configured(&server("http://127.0.0.1:9/mcp", rest));
    }
    configured(&server(
        "http://example.org/mcp",
        "headers = { X-Team = \"blue\" }",
    ));
}

#[test]
fn suspicious_commands_and_arguments_cause_warnings() {
    let message = load_warnings("[servers.a]\ncommand = \"/usr/bin/env -S python\"");
    assert!(
        message.contains(
            "warning: servers.a.command: this is the path of one program, not a shell command"
        ),
        "{message}"
    );
    let message = load_warnings(
        "[servers.a]\ncommand = \"x\"\narguments = [\"--api-key=abcdef\", \"--token\", \"abcdef\", \"--max-tokens=500\"]",
    );
    assert!(
        message.contains("warning: servers.a.arguments[0]: this looks like a secret"),
        "{message}"
    );
    assert!(
        message.contains("warning: servers.a.arguments[2]: this looks like a secret"),
        "{message}"
    );
    assert_eq!(message.matches("warning:").count(), 2, "{message}");
    assert!(!message.contains("abcdef"), "{message}");
    configured(
        "[servers.a]\ncommand = \"/opt/My Tools/server\"\narguments = [\"--zone\", \"$(pwd)/x\", \"--verbose\"]",
    );
}

#[test]
fn layers_merge_servers_and_agents_can_name_them() {
    let user = source(
        Layer::User,
        "user.toml",
        "[servers.time]\ncommand = \"./time\"\nenvironment = { A = \"1\" }",
    );
    let mut user = user;
    user.directory = "/home/ada".into();
    let own = project(
        "[servers.time]\nenvironment = { B = \"2\" }\nparts = [\"x\"]\n[agents.helper]\nservers = [\"time\"]",
    );
    let variable = (
        "WINDLASS_CONFIG__servers__time__trusted".to_owned(),
        "true".to_owned(),
    );
    let loaded = load(
        &[user, own],
        [variable],
        &["servers.time.environment.C=3".to_owned()],
    )
    .unwrap_or_else(|mistakes| panic!("{}", render(&mistakes)));
    let time = &loaded.configuration.servers()[0];
    assert!(time.is_trusted);
    let command = command(time);
    assert_eq!(command.program, "/home/ada/./time");
    assert_eq!(command.parts, [Path::new("/project/x")]);
    assert_eq!(
        command.environment.keys().collect::<Vec<_>>(),
        ["A", "B", "C"]
    );
    let helper = &loaded.configuration.agents()["helper"];
    assert_eq!(
        helper
            .servers
            .iter()
            .map(ServerName::as_str)
            .collect::<Vec<_>>(),
        ["time"]
    );
    let entries = loaded.configuration.entries();
    let trusted = entries
        .iter()
        .find(|entry| entry.key == "servers.time.trusted")
        .unwrap();
    assert_eq!(trusted.layer, Layer::Variable);
}

#[test]
fn secrets_in_arguments_are_hidden() {
    let text = "[servers.a]\ncommand = \"x\"\narguments = [\"--api-key=abcdef\", \"sk-123456\", \"--token\", \"tttttt\", \"plain\"]";
    let configuration = load(&[project(text)], [], &[]).unwrap().configuration;
    let entries = configuration.entries();
    let arguments = entries
        .iter()
        .find(|entry| entry.key == "servers.a.arguments")
        .unwrap();
    assert_eq!(
        arguments.value,
        serde_json::json!([
            "--api-key=[hidden]",
            "[hidden]",
            "--token",
            "[hidden]",
            "plain"
        ])
    );
}
