//! The worker: resumes runs without `runs resume`, if it can bind them.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::acting::{OfficeProject, project_that_deletes, project_that_writes, word_after};
use super::seeded::{CommandOutput, run_as};

/// Starts a run that waits for approval of the deletion. Returns the ids of the request and of the run.
pub(super) fn start_waiting_run(office: &OfficeProject) -> (String, String) {
    let output = CommandOutput::of(&mut office.command(&OfficeProject::RUN));
    assert_eq!(output.code, 4, "{output:?}");
    (
        word_after(&output.err, "windlass approvals show ").to_owned(),
        word_after(&output.err, "windlass runs resume ").to_owned(),
    )
}

/// A worker in the background, killed at the end of the test.
struct BackgroundWorker(Child);

impl BackgroundWorker {
    fn start(office: &OfficeProject) -> Self {
        let mut command = office.command(&["worker"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for BackgroundWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn state(office: &OfficeProject, run: &str) -> String {
    let shown = CommandOutput::of(&mut office.command(&["runs", "show", run, "--json"]));
    shown.json()["state"].as_str().unwrap().to_owned()
}

#[test]
fn with_a_worker_an_approval_is_enough() {
    let office = project_that_deletes();
    let (question, run) = start_waiting_run(&office);
    let _worker = BackgroundWorker::start(&office);
    until("the worker starts", || {
        office.project.path("data/worker.lock").exists()
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(state(&office, &run), "waiting");
    let approve = ["approvals", "approve", &question, "--yes"];
    let approved = run_as(&office.project, "bob", &approve);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert!(
        approved.out.contains("a worker resumes the run"),
        "{approved:?}"
    );
    until("the worker resumes the run", || {
        state(&office, &run) == "ended"
    });
    assert!(!office.project.path("files").join("draft.txt").exists());
    let shown = CommandOutput::of(&mut office.command(&["trace", "show", &run, "--json"]));
    assert_eq!(shown.json()["end"], json!({"end": "completed"}));
}

#[test]
fn without_a_worker_the_command_to_resume_is_printed() {
    let office = project_that_deletes();
    let (question, run) = start_waiting_run(&office);
    let approve = ["approvals", "approve", &question, "--yes"];
    let approved = run_as(&office.project, "bob", &approve);
    let expected = format!("resume with: windlass runs resume {run}");
    assert!(approved.out.contains(&expected), "{approved:?}");
}

#[test]
fn worker_until_idle_exits_when_idle() {
    let office = project_that_deletes();
    let (question, run) = start_waiting_run(&office);
    let idle = CommandOutput::of(&mut office.command(&["worker", "--until-idle"]));
    assert_eq!(idle.code, 0, "{idle:?}");
    assert_eq!(state(&office, &run), "waiting");
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    let worked = CommandOutput::of(&mut office.command(&["worker", "--until-idle"]));
    assert_eq!(worked.code, 0, "{worked:?}");
    assert!(worked.err.contains("resumed (command)"), "{worked:?}");
    assert_eq!(state(&office, &run), "ended");
}

#[test]
fn run_whose_library_changed_is_not_resumed_and_the_reason_is_printed() {
    let office = project_that_deletes();
    let (question, run) = start_waiting_run(&office);
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    let library = format!("# changed\n{}", office.project.read("tools.toml"));
    std::fs::write(office.project.path("tools.toml"), library).unwrap();
    let worked = CommandOutput::of(&mut office.command(&["worker", "--until-idle"]));
    assert!(
        worked.err.contains("not resumed: waiting for its program")
            && worked.err.contains("tools.toml` changed"),
        "{worked:?}"
    );
    assert_eq!(state(&office, &run), "waiting");
    assert!(office.project.path("files").join("draft.txt").exists());
}

#[test]
fn run_from_another_directory_is_not_resumed() {
    let office = project_that_deletes();
    let (question, run) = start_waiting_run(&office);
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    let mut elsewhere = office.command(&["worker", "--until-idle"]);
    elsewhere.current_dir(office.project.path("files"));
    let worked = CommandOutput::of(&mut elsewhere);
    assert!(worked.err.contains("it was started in"), "{worked:?}");
    assert_eq!(state(&office, &run), "waiting");
}

#[test]
fn killed_run_is_resumed_and_interrupted_run_is_not() {
    use std::os::unix::process::ExitStatusExt as _;
    let office = project_that_writes();
    let arguments = [&OfficeProject::RUN[..], &["--jsonl"]].concat();
    // The call is held for some seconds. Meanwhile the process is ended, by SIGINT or by SIGKILL.
    for (signal, is_resumed) in [("-INT", false), ("-KILL", true)] {
        let mut command = office.command(&arguments);
        let log = office.project.path("log");
        let output = std::fs::File::create(&log).unwrap();
        let mut child = command
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the call is held", || {
            std::fs::read_to_string(&log).unwrap().contains("\"held\"")
        });
        let pid = child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(sent.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.signal() == Some(9), is_resumed, "{status:?}");
        let log = std::fs::read_to_string(&log).unwrap();
        let started: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let run = started["run"].as_str().unwrap();
        // After the hold a worker resumes both runs. During the hold it resumes only the run whose process died.
        let worked = CommandOutput::of(&mut office.command(&["worker", "--until-idle"]));
        let is_taken = worked.err.contains(&format!("run {run}: resumed"));
        assert_eq!(is_taken, is_resumed, "{signal}: {worked:?}");
    }
}

#[test]
fn run_with_native_tools_of_a_program_waits_for_that_program() {
    let office = project_that_deletes();
    let data = office.project.path("data");
    let text = office.project.read("agent.gram");
    let agent = windlass::Agent::from_text(&text).unwrap();
    let library = windlass::ToolLibrary::from_toml(
        &office.project.read("tools.toml"),
        &office.project.path(""),
    )
    .unwrap();
    let script = windlass::ScriptedModel::from_file(office.project.path("answers.jsonl")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let done = runtime
        .block_on(async {
            agent
                .run_with(&library, "Keep order.")
                .model(script)
                .kept_in(&data)
                .await
        })
        .unwrap();
    let run = done.run().id().to_string();
    // The program of the run signed the journal with the key of the user.
    let key = windlass_keys::KeyDirectory::of_user().unwrap();
    let key = key.path().join("journal.key");
    let office_command = |arguments: &[&str]| {
        let mut command = office.command(arguments);
        command.env("WINDLASS_JOURNAL_KEY_FILE", &key);
        command
    };
    let shown = CommandOutput::of(&mut office_command(&["runs", "show", &run]));
    assert!(
        shown.out.contains("waiting for an approval or answer"),
        "{shown:?}"
    );
    let question = done.questions().next().unwrap().call().to_string();
    let approve = ["approvals", "approve", &question, "--yes"];
    let mut approve = office_command(&approve);
    let approved = CommandOutput::of(approve.env("WINDLASS_TEST_PRINCIPAL", "bob"));
    assert_eq!(approved.code, 0, "{approved:?}");
    let worked = CommandOutput::of(&mut office_command(&["worker", "--until-idle"]));
    assert!(
        worked
            .err
            .contains("its tools are functions of the program `all"),
        "{worked:?}"
    );
    let shown = CommandOutput::of(&mut office_command(&["runs", "show", &run]));
    assert!(
        shown
            .out
            .contains("waiting for its program (its tools are functions of the program `all"),
        "{shown:?}"
    );
    let shown = CommandOutput::of(&mut office_command(&["runs", "show", &run, "--json"]));
    assert_eq!(shown.json()["state"], "waiting");
}
