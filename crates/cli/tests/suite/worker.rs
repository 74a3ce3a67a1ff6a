//! The worker: what can go on goes on without anybody's `runs resume`, by the program that can bind it.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::acting::{Office, call, finish};
use super::seeded::{Told, run_as};

fn deletes() -> Office {
    Office::new(&[
        // The office makes its files when they are first listed.
        call("listFiles", json!({})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("The draft is gone."),
    ])
}

/// The word after `text` in what was printed.
fn word_after(told: &str, text: &str) -> String {
    let (_, after) = told
        .split_once(text)
        .unwrap_or_else(|| panic!("{text}: {told}"));
    after.split_whitespace().next().unwrap().to_owned()
}

/// A run that waits for the deletion to be approved: the ids of the question and of the run.
fn waiting(office: &Office) -> (String, String) {
    let arguments = [
        "run",
        "agent.gram",
        "Keep order.",
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ];
    let told = Told::of(&mut office.command(&arguments));
    assert_eq!(told.code, 4, "{told:?}");
    (
        word_after(&told.err, "windlass approvals show "),
        word_after(&told.err, "windlass runs resume "),
    )
}

/// A worker in the background, ended with the test.
struct Background(Child);

impl Background {
    fn start(office: &Office) -> Self {
        let mut command = office.command(&["worker"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn state(office: &Office, run: &str) -> String {
    let shown = Told::of(&mut office.command(&["runs", "show", run, "--json"]));
    shown.json()["state"].as_str().unwrap().to_owned()
}

#[test]
fn with_a_worker_an_approval_is_enough() {
    let office = deletes();
    let (question, run) = waiting(&office);
    let _worker = Background::start(&office);
    until("the worker starts", || {
        office.place.path("data/worker.lock").exists()
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(state(&office, &run), "waiting");
    let approve = ["approvals", "approve", &question, "--yes"];
    let approved = run_as(&office.place, "bob", &approve);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert!(
        approved.out.contains("a worker resumes the run"),
        "{approved:?}"
    );
    until("the run goes on by itself", || {
        state(&office, &run) == "ended"
    });
    assert!(!office.place.path("files").join("draft.txt").exists());
    let shown = Told::of(&mut office.command(&["trace", "show", &run, "--json"]));
    assert_eq!(shown.json()["end"], json!({"end": "completed"}));
}

#[test]
fn without_a_worker_the_command_to_resume_is_printed() {
    let office = deletes();
    let (question, run) = waiting(&office);
    let approve = ["approvals", "approve", &question, "--yes"];
    let approved = run_as(&office.place, "bob", &approve);
    let expected = format!("continue it with: windlass runs resume {run}");
    assert!(approved.out.contains(&expected), "{approved:?}");
}

#[test]
fn a_worker_that_is_told_to_stops_when_nothing_is_left_to_do() {
    let office = deletes();
    let (question, run) = waiting(&office);
    let idle = Told::of(&mut office.command(&["worker", "--until-idle"]));
    assert_eq!(idle.code, 0, "{idle:?}");
    assert_eq!(state(&office, &run), "waiting");
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.place, "bob", &approve).code, 0);
    let worked = Told::of(&mut office.command(&["worker", "--until-idle"]));
    assert_eq!(worked.code, 0, "{worked:?}");
    assert!(worked.err.contains("resumed (command)"), "{worked:?}");
    assert_eq!(state(&office, &run), "ended");
}

#[test]
fn a_run_whose_library_changed_is_left_and_the_reason_is_printed() {
    let office = deletes();
    let (question, run) = waiting(&office);
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.place, "bob", &approve).code, 0);
    let library = format!("# changed\n{}", office.place.read("tools.toml"));
    std::fs::write(office.place.path("tools.toml"), library).unwrap();
    let worked = Told::of(&mut office.command(&["worker", "--until-idle"]));
    assert!(
        worked.err.contains("not resumed: waiting for its program")
            && worked.err.contains("tools.toml` changed"),
        "{worked:?}"
    );
    assert_eq!(state(&office, &run), "waiting");
    assert!(office.place.path("files").join("draft.txt").exists());
}

#[test]
fn a_run_from_another_directory_is_left() {
    let office = deletes();
    let (question, run) = waiting(&office);
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.place, "bob", &approve).code, 0);
    let mut elsewhere = office.command(&["worker", "--until-idle"]);
    elsewhere.current_dir(office.place.path("files"));
    let worked = Told::of(&mut elsewhere);
    assert!(worked.err.contains("it was started in"), "{worked:?}");
    assert_eq!(state(&office, &run), "waiting");
}

#[test]
fn a_run_whose_process_was_killed_is_resumed_and_one_that_a_person_stopped_is_not() {
    use std::os::unix::process::ExitStatusExt as _;
    let office = Office::new(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "Tuesday: rain."}),
        ),
        finish("Done."),
    ]);
    let arguments = [
        "run",
        "agent.gram",
        "Keep order.",
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
        "--jsonl",
    ];
    // The call is held for some seconds: the process is ended meanwhile, once by SIGINT, once by SIGKILL.
    for (signal, is_resumed) in [("-INT", false), ("-KILL", true)] {
        let mut command = office.command(&arguments);
        let log = office.place.path("log");
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
        // The hold is over after some seconds, and then a worker resumes either; before that it takes only
        // the one whose process died.
        let worked = Told::of(&mut office.command(&["worker", "--until-idle"]));
        let is_taken = worked.err.contains(&format!("run {run}: resumed"));
        assert_eq!(is_taken, is_resumed, "{signal}: {worked:?}");
    }
}

#[test]
fn a_run_of_a_program_with_its_own_tools_waits_for_that_program() {
    let office = deletes();
    let data = office.place.path("data");
    let text = office.place.read("agent.gram");
    let agent = windlass::Agent::from_text(&text).unwrap();
    let library =
        windlass::ToolLibrary::from_toml(&office.place.read("tools.toml"), &office.place.path(""))
            .unwrap();
    let script = windlass::ScriptedModel::from_file(office.place.path("answers.jsonl")).unwrap();
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
    let shown = Told::of(&mut office.command(&["runs", "show", &run]));
    assert!(shown.out.contains("is waiting for a person"), "{shown:?}");
    let question = done.questions().next().unwrap().call().to_string();
    let approve = ["approvals", "approve", &question, "--yes"];
    assert_eq!(run_as(&office.place, "bob", &approve).code, 0);
    let worked = Told::of(&mut office.command(&["worker", "--until-idle"]));
    assert!(
        worked
            .err
            .contains("its tools are functions of the program `all"),
        "{worked:?}"
    );
    let shown = Told::of(&mut office.command(&["runs", "show", &run]));
    assert!(
        shown
            .out
            .contains("is waiting for its program: its tools are functions of the program `all"),
        "{shown:?}"
    );
    assert_eq!(state(&office, &run), "waiting");
}
