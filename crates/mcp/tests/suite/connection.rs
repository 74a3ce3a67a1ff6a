//! How connections are established and closed.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_mcp::{Era, Health, Server, ServerOptions};
use windlass_spec::ErrorCategory;
use windlass_spec::server::{EnvTemplate, Transport};

use super::scripted::{ScriptedServer, eventually, expect_answer, is_running, options, settings};

fn with_era(era: Era) -> ServerOptions {
    ServerOptions {
        era: Some(era),
        ..options()
    }
}

#[tokio::test]
async fn a_server_is_started_on_first_use() {
    let scripted = ScriptedServer::new(&[]);
    assert_eq!(scripted.server.health(), Health::Idle);
    assert_eq!(scripted.server.generation(), 0);
    assert_eq!(scripted.log_lines(), Vec::<String>::new());
    scripted.server.close().await;
    assert_eq!(scripted.log_lines(), Vec::<String>::new());
}

#[tokio::test]
async fn the_era_is_detected_and_legacy_servers_are_restarted() {
    for (era, found, starts) in [
        ("legacy", Era::Legacy, 2),
        ("modern", Era::Modern, 1),
        ("dual", Era::Modern, 1),
    ] {
        let scripted = ScriptedServer::new(&["--era", era]);
        let info = scripted.server.connect().await.unwrap();
        assert_eq!(info.era, found, "{era}");
        assert_eq!(info.server_name, "fixture");
        assert_eq!(info.server_version, "1");
        assert_eq!(info.instructions.as_deref(), Some("be kind"));
        let version = match found {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        };
        assert_eq!(info.protocol_version, version);
        assert_eq!(scripted.count("start"), starts, "{era}");
        scripted.assert_echoes().await;
        scripted.server.close().await;
    }
}

#[tokio::test]
async fn a_stored_era_is_tried_first() {
    for (era, remembered) in [
        ("legacy", Era::Legacy),
        ("modern", Era::Modern),
        ("dual", Era::Legacy),
    ] {
        let scripted = ScriptedServer::with(&["--era", era], with_era(remembered), |_| {});
        assert_eq!(scripted.server.connect().await.unwrap().era, remembered);
        assert_eq!(scripted.count("start"), 1, "{era}");
    }
}

#[tokio::test]
async fn a_wrong_stored_era_is_corrected_by_a_restart() {
    for (era, remembered) in [("legacy", Era::Modern), ("modern", Era::Legacy)] {
        let scripted = ScriptedServer::with(&["--era", era], with_era(remembered), |_| {});
        assert_ne!(scripted.server.connect().await.unwrap().era, remembered);
        assert_eq!(scripted.count("start"), 2, "{era}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_discover_is_tried_in_the_legacy_era() {
    let scripted = ScriptedServer::with(&["--era", "silent"], options(), |settings| {
        settings.start_timeout = Duration::from_millis(1_500);
    });
    assert_eq!(scripted.server.connect().await.unwrap().era, Era::Legacy);
    assert_eq!(scripted.count("ignored server/discover"), 1);
}

#[tokio::test]
async fn a_slow_server_is_not_mistaken_for_a_legacy_one() {
    let scripted = ScriptedServer::new(&["--era", "dual", "--start-delay", "2500"]);
    let info = scripted.server.connect().await.unwrap();
    assert_eq!(info.era, Era::Modern);
    assert_eq!(scripted.count("start"), 1);
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let scripted = ScriptedServer::with(&["--start-delay", "600000"], options(), |settings| {
        settings.start_timeout = Duration::from_millis(300);
    });
    let begun = Instant::now();
    let error = scripted.server.connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let process = scripted.process();
    eventually("the process is gone", || !is_running(process)).await;
}

#[tokio::test]
async fn an_unknown_protocol_version_is_refused() {
    let scripted =
        ScriptedServer::with(&["--version", "1999-01-01"], with_era(Era::Legacy), |_| {});
    let error = scripted.server.connect().await.unwrap_err();
    assert!(error.message.contains("1999-01-01"), "{error}");
}

#[tokio::test]
async fn a_missing_program_is_an_error() {
    let server = Server::new(settings("/does/not/exist", &[]), options());
    let error = server.connect().await.unwrap_err();
    assert!(error.message.contains("/does/not/exist"), "{error}");
    let Health::Failing { attempts, .. } = server.health() else {
        panic!("the server is not failing");
    };
    assert_eq!(attempts, 1);
}

#[tokio::test]
async fn errors_contain_the_standard_error_of_a_program_that_ends() {
    let scripted = ScriptedServer::new(&["--die", "start"]);
    let error = scripted.server.connect().await.unwrap_err();
    assert!(error.message.contains("exit status: 3"), "{error}");
    assert!(error.message.contains("this server never works"), "{error}");
}

#[tokio::test]
async fn a_program_gets_a_minimal_environment_and_the_named_variables() {
    let options = ServerOptions {
        lookup: std::sync::Arc::new(|name| (name == "TOKEN_OF_TEST").then(|| "s3cret".to_owned())),
        ..options()
    };
    let scripted = ScriptedServer::with(&[], options, |settings| {
        if let Transport::Command(command) = &mut settings.transport {
            let environment = &mut command.environment;
            environment.insert(
                "TOKEN".to_owned(),
                EnvTemplate::new("Bearer env:TOKEN_OF_TEST").unwrap(),
            );
            environment.insert("PLAIN".to_owned(), EnvTemplate::new("plain").unwrap());
        }
    });
    let outcome = scripted.call("environment", json!({})).await;
    let value = expect_answer(outcome).value;
    let variables = value.as_object().unwrap();
    let mut names: Vec<&str> = variables.keys().map(String::as_str).collect();
    names.retain(|name| !["PATH", "HOME", "LANG"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["PLAIN", "TOKEN"]);
    assert_eq!(variables["TOKEN"], "Bearer s3cret");
}

#[tokio::test]
async fn a_server_with_an_unset_variable_is_not_started() {
    let options = ServerOptions {
        lookup: std::sync::Arc::new(|_| None),
        ..options()
    };
    let scripted = ScriptedServer::with(&[], options, |settings| {
        if let Transport::Command(command) = &mut settings.transport {
            command
                .environment
                .insert("A".to_owned(), EnvTemplate::new("env:NOT_THERE").unwrap());
        }
    });
    let error = scripted.server.connect().await.unwrap_err();
    assert!(error.message.contains("NOT_THERE"), "{error}");
    assert_eq!(scripted.count("start"), 0);
}

#[tokio::test]
async fn definitions_are_complete() {
    for era in ["legacy", "modern"] {
        let scripted = ScriptedServer::new(&["--era", era]);
        let definitions = scripted.server.definitions().await.unwrap();
        let echo = definitions
            .iter()
            .find(|tool| tool.name() == "echo")
            .unwrap();
        assert_eq!(echo.as_map()["x-unknown"], json!({ "kept": true }));
        assert_eq!(echo.as_map()["annotations"]["x-more"], json!(1));
        assert_eq!(echo.hints().read_only, Some(true));
    }
}

#[tokio::test]
async fn all_pages_of_a_long_tool_list_are_read() {
    let scripted = ScriptedServer::new(&["--tools", "5000", "--page", "400"]);
    let definitions = scripted.server.definitions().await.unwrap();
    assert_eq!(definitions.len(), 5_000);
    assert_eq!(definitions[4_999].name(), "tool_4999");
    assert_eq!(scripted.count("list"), 13);
}

#[tokio::test]
async fn endless_and_circular_lists_are_refused() {
    let circular = ScriptedServer::new(&["--tools", "3", "--cursor", "loop"]);
    let error = circular.server.definitions().await.unwrap_err();
    assert!(error.message.contains("repeat"), "{error}");
    assert!(circular.count("list") <= 3);

    let mut few = options();
    few.limits.tools = 50;
    let endless = ScriptedServer::with(
        &["--tools", "1", "--cursor", "endless"],
        few.clone(),
        |_| {},
    );
    let error = endless.server.definitions().await.unwrap_err();
    assert!(error.message.contains("too many pages"), "{error}");

    let many = ScriptedServer::with(&["--tools", "51"], few, |_| {});
    assert!(
        many.server
            .definitions()
            .await
            .unwrap_err()
            .message
            .contains("50 tools")
    );

    let mut small = options();
    small.limits.list_bytes = 10_000;
    let large = ScriptedServer::with(&["--tools", "500"], small, |_| {});
    assert!(
        large
            .server
            .definitions()
            .await
            .unwrap_err()
            .message
            .contains("10000 bytes")
    );
}

#[tokio::test]
async fn an_expired_list_makes_a_new_generation() {
    let mut options = options();
    options.limits.shortest_ttl = Duration::ZERO;
    let scripted = ScriptedServer::with(&["--era", "modern", "--ttl", "150"], options, |_| {});
    scripted.server.definitions().await.unwrap();
    let generation = scripted.server.generation();
    eventually("a new generation", || {
        scripted.server.generation() == generation + 1
    })
    .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(scripted.server.generation(), generation + 1);
}

#[tokio::test]
async fn noise_on_the_output_is_skipped_up_to_a_limit() {
    let scripted = ScriptedServer::new(&["--noise", "20"]);
    scripted.assert_echoes().await;

    let mut strict = options();
    strict.limits.noise_lines = 10;
    let scripted = ScriptedServer::with(&["--noise", "20"], strict, |_| {});
    let error = scripted.server.connect().await.unwrap_err();
    assert!(error.message.contains("that are not messages"), "{error}");
}

/// A server that ignores the end of its input and SIGTERM, with a child process that does too.
fn stubborn() -> (ScriptedServer, std::path::PathBuf, tempfile::TempDir) {
    let directory = tempfile::TempDir::new().unwrap();
    let child = directory.path().join("child");
    let script = format!(
        "trap '' TERM; (exec sleep 3600) & echo $! > {}; exec {} --stubborn \"$@\"",
        child.display(),
        env!("CARGO_BIN_EXE_windlass-mcp-fixture"),
    );
    let scripted = ScriptedServer::with(&[], with_era(Era::Legacy), |settings| {
        if let Transport::Command(command) = &mut settings.transport {
            command.program = "sh".to_owned();
            let arguments = std::mem::take(&mut command.arguments);
            command.arguments = vec!["-c".to_owned(), script, "sh".to_owned()];
            command.arguments.extend(arguments);
        }
    });
    (scripted, child, directory)
}

fn number_in(file: &std::path::Path) -> u32 {
    std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn closing_kills_a_stubborn_server_and_its_children() {
    let (scripted, child, _directory) = stubborn();
    scripted.server.connect().await.unwrap();
    let (server, child) = (scripted.process(), number_in(&child));
    assert!(is_running(server) && is_running(child));
    scripted.server.close().await;
    assert!(!is_running(server), "the server still runs");
    // It was killed; the system may take a moment to end it.
    eventually("its child is gone", || !is_running(child)).await;
    assert_eq!(scripted.count("closed"), 1, "its input was closed first");
}

#[tokio::test]
async fn dropping_the_last_handle_ends_all_processes() {
    let (scripted, child, _directory) = stubborn();
    scripted.server.connect().await.unwrap();
    let (server, child) = (scripted.process(), number_in(&child));
    drop(scripted);
    eventually("both are gone", || {
        !is_running(server) && !is_running(child)
    })
    .await;
}

#[test]
fn the_end_of_the_runtime_ends_all_processes() {
    let (scripted, child, _directory) = stubborn();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(scripted.server.connect()).unwrap();
    let (server, child) = (scripted.process(), number_in(&child));
    assert!(is_running(server) && is_running(child));
    drop(runtime);
    // They were killed; the system may take a moment to end them.
    let begun = Instant::now();
    while is_running(server) || is_running(child) {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "a process still runs"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_server_that_ends_with_its_input_is_not_waited_for_and_its_children_are_killed() {
    let directory = tempfile::TempDir::new().unwrap();
    let child = directory.path().join("child");
    let script = format!(
        "(exec sleep 3600) & echo $! > {}; exec {} \"$@\"",
        child.display(),
        env!("CARGO_BIN_EXE_windlass-mcp-fixture"),
    );
    let mut patient = with_era(Era::Legacy);
    patient.limits.close_grace = Duration::from_secs(20);
    let scripted = ScriptedServer::with(&[], patient, |settings| {
        if let Transport::Command(command) = &mut settings.transport {
            command.program = "sh".to_owned();
            let arguments = std::mem::take(&mut command.arguments);
            command.arguments = vec!["-c".to_owned(), script, "sh".to_owned()];
            command.arguments.extend(arguments);
        }
    });
    scripted.server.connect().await.unwrap();
    let (server, child) = (scripted.process(), number_in(&child));
    let begun = Instant::now();
    scripted.server.close().await;
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "closing did not wait for the whole grace period"
    );
    assert!(!is_running(server), "the server still runs");
    // It was killed; the system may take a moment to end it.
    eventually("its child is gone", || !is_running(child)).await;
}

#[tokio::test]
async fn a_closed_server_is_not_started_again() {
    let scripted = ScriptedServer::new(&[]);
    scripted.server.connect().await.unwrap();
    let starts = scripted.count("start");
    scripted.server.close().await;
    assert!(scripted.server.connect().await.is_err());
    assert_eq!(scripted.count("start"), starts);
    assert_eq!(scripted.server.health(), Health::Idle);
}

#[tokio::test]
async fn closing_during_a_start_ends_all_processes() {
    let scripted = ScriptedServer::new(&["--start-delay", "600000"]);
    let server = scripted.server.clone();
    let starting = tokio::spawn(async move { server.connect().await });
    scripted.wait_for_line("start").await;
    assert_eq!(scripted.server.health(), Health::Starting);
    let process = scripted.process();
    scripted.server.close().await;
    assert!(starting.await.unwrap().is_err());
    eventually("the process is gone", || !is_running(process)).await;
}

#[tokio::test]
async fn a_disabled_server_is_not_started() {
    let scripted = ScriptedServer::with(&[], options(), |settings| settings.is_enabled = false);
    assert!(scripted.server.connect().await.is_err());
    assert_eq!(scripted.count("start"), 0);
}
