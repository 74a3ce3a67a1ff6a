//! A worker resumes only what it binds as it was bound: the same files, rules, variables and directory. What it
//! does not resume is shown with the reason.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::acting::{OfficeProject, call, finish, project_that_deletes, word_after};
use super::seeded::{CommandOutput, run_as};
use super::worker::start_waiting_run;

const POLICY: &str = r#"
@id("all")
permit(principal, action, resource);
@id("no_deletion_in_production")
forbid(principal, action == Action::"deleteFile", resource)
when { context.environment == "production" };
"#;

/// Starts a run that waits for an approval, and approves it without a worker.
fn approved(office: &OfficeProject, change: impl FnOnce()) -> String {
    let (question, run) = start_waiting_run(office);
    change();
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    run
}

fn work(office: &OfficeProject) -> CommandOutput {
    CommandOutput::of(&mut office.command(&["worker", "--until-idle"]))
}

fn shown(office: &OfficeProject, run: &str) -> Value {
    CommandOutput::of(&mut office.command(&["runs", "show", run, "--json"])).json()
}

#[test]
fn changed_script_keeps_the_run_waiting_however_the_command_names_it() {
    for (before, after) in [
        (r#"command = ["#, "directory = \"sub\"\ncommand = ["),
        (
            r#"["python3", "office.py""#,
            r#"["env", "python3", "office.py""#,
        ),
        (
            r#"["python3", "office.py", "delete"]"#,
            r#"["sh", "-c", "python3 office.py delete"]"#,
        ),
    ] {
        let office = project_that_deletes();
        let tools = office.project.read("tools.toml").replace(before, after);
        std::fs::write(office.project.path("tools.toml"), tools).unwrap();
        let script = match after.contains("sub") {
            true => {
                std::fs::create_dir(office.project.path("sub")).unwrap();
                let from = office.project.path("office.py");
                std::fs::rename(from, office.project.path("sub/office.py")).unwrap();
                office.project.path("sub/office.py")
            }
            false => office.project.path("office.py"),
        };
        let run = approved(&office, || {
            let text = std::fs::read_to_string(&script).unwrap();
            std::fs::write(&script, format!("{text}\n# changed\n")).unwrap();
        });
        let worked = work(&office);
        assert!(
            worked.err.contains("waiting for its program"),
            "{after}: {worked:?}"
        );
        assert!(office.project.path("files/draft.txt").exists(), "{after}");
        let reason = shown(&office, &run)["waits_for_program"].to_string();
        assert!(reason.contains("office.py` changed"), "{reason}");
    }
}

#[test]
fn run_is_resumed_only_in_the_environment_it_was_started_in() {
    let office = OfficeProject::new(&[
        call("listFiles", json!({})),
        call("writeNote", json!({"file": "journal.txt", "line": "Rain."})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("Done."),
    ]);
    std::fs::write(office.project.path("policy.cedar"), POLICY).unwrap();
    let arguments = [
        &OfficeProject::RUN[..],
        &["--policy", "policy.cedar", "--jsonl"],
    ]
    .concat();
    let log = office.project.path("log");
    let mut command = office.command(&arguments);
    command
        .env("WINDLASS_ENVIRONMENT", "production")
        .stdout(std::fs::File::create(&log).unwrap())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !std::fs::read_to_string(&log).unwrap().contains("\"held\"") {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let started: Value = {
        let log = std::fs::read_to_string(&log).unwrap();
        serde_json::from_str(log.lines().next().unwrap()).unwrap()
    };
    let run = started["run"].as_str().unwrap();
    let worked = work(&office);
    assert!(worked.err.contains("waiting for its program"), "{worked:?}");
    let mut command = office.command(&["worker", "--until-idle"]);
    command.env("WINDLASS_ENVIRONMENT", "production");
    let worked = CommandOutput::of(&mut command);
    assert!(worked.err.contains("resumed"), "{worked:?}");
    let journal = std::fs::read_to_string(office.project.path("files/journal.txt")).unwrap();
    assert!(journal.contains("Rain."), "{journal}");
    let trace = CommandOutput::of(&mut office.command(&["trace", "show", run]));
    assert!(trace.out.contains("no_deletion_in_production"), "{trace:?}");
}

#[test]
fn approved_call_of_a_single_tool_is_resumed() {
    let office = project_that_deletes();
    let list = ["tools", "call", "listFiles", "--library", "tools.toml"];
    assert_eq!(CommandOutput::of(&mut office.command(&list)).code, 0);
    let delete = [
        "tools",
        "call",
        "deleteFile",
        "--library",
        "tools.toml",
        "file=draft.txt",
    ];
    let waits = CommandOutput::of(&mut office.command(&delete));
    assert_eq!(waits.code, 4, "{waits:?}");
    let question = word_after(&waits.err, "windlass approvals show ");
    let approve = ["approvals", "approve", question, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    let worked = work(&office);
    assert!(worked.err.contains("resumed"), "{worked:?}");
    assert!(!office.project.path("files/draft.txt").exists());
}

#[test]
fn run_is_resumed_only_under_the_configuration_files_it_was_started_with() {
    let office = project_that_deletes();
    let config = office.project.path("other/windlass");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("windlass.toml"), "environment = \"staging\"\n").unwrap();
    let mut command = office.command(&OfficeProject::RUN);
    command.env("XDG_CONFIG_HOME", office.project.path("other"));
    let waits = CommandOutput::of(&mut command);
    assert_eq!(waits.code, 4, "{waits:?}");
    let question = word_after(&waits.err, "windlass approvals show ");
    let approve = ["approvals", "approve", question, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    let worked = work(&office);
    assert!(worked.err.contains("read from other files"), "{worked:?}");
    assert!(office.project.path("files/draft.txt").exists());
}

#[test]
fn reason_why_a_worker_did_not_resume_a_run_is_shown() {
    let office = project_that_deletes();
    let run = approved(&office, || {});
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = office.command(&["worker", "--until-idle"]);
    command.current_dir(&elsewhere);
    let worked = CommandOutput::of(&mut command);
    assert!(worked.err.contains("waiting for its program"), "{worked:?}");
    let status = shown(&office, &run);
    let reason = status["waits_for_program"].as_str().unwrap();
    assert!(reason.contains("it was started in"), "{reason}");
    let listed = CommandOutput::of(&mut office.command(&["runs", "list"]));
    assert!(listed.out.contains("waiting for its program"), "{listed:?}");
    // From the right place it is resumed, and the reason is gone.
    assert!(work(&office).err.contains("resumed"));
    assert_eq!(shown(&office, &run)["waits_for_program"], Value::Null);
}

#[test]
fn pipe_in_place_of_a_library_blocks_nothing() {
    let office = project_that_deletes();
    let run = approved(&office, || {});
    let library = office.project.path("tools.toml");
    std::fs::remove_file(&library).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&library).status();
    assert!(made.unwrap().success());
    let started = Instant::now();
    let listed = CommandOutput::of(&mut office.command(&["runs", "list"]));
    assert!(listed.out.contains(&run), "{listed:?}");
    let worked = work(&office);
    assert!(worked.err.contains("cannot be read"), "{worked:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
}
