//! `windlass agent show` and `windlass intent`, agent files as JSON, and runs that are found by a part of their id.

use serde_json::Value;

use super::program::{TestProject, example};

fn project() -> TestProject {
    TestProject::new().with("hello.gram", example("hello.gram"))
}

/// The printed JSON object.
fn object(printed: &str) -> Value {
    let text = printed.split_once("--- stdout\n").unwrap().1;
    let text = text.split("\n---").next().unwrap();
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[test]
fn agent_file_as_json_is_taken_wherever_gram_is() {
    let project = project();
    let shown = project.run(&["agent", "show", "hello.gram", "--json"]);
    let file = object(&shown);
    assert_eq!(file["agents"][0]["name"], "hello_world_agent");
    assert_eq!(
        file["tools"][0]["typeSignature"],
        "(name: Text) --> IO Text"
    );
    let project = project.with("hello.json", file.to_string());
    let checked = project.run(&["check", "hello.json"]);
    assert!(checked.contains("valid, 1 agent and 1 tool"), "{checked}");
    let arguments = [
        "run",
        "hello.json",
        "Greet Ada",
        "--library",
        "hello",
        "--model",
        "reflex",
    ];
    let answered = project.run(&arguments);
    assert!(
        answered.contains("Hello, Ada! Nice to meet you."),
        "{answered}"
    );
    // And back: the text is the canonical one.
    let gram = project.run(&["agent", "show", "hello.json"]);
    let same = project.run(&["agent", "show", "hello.gram"]);
    assert_eq!(gram, same);
    assert!(
        gram.starts_with("--- stdout\n[hello_world_agent:Agent {"),
        "{gram}"
    );
    let one = project.run(&[
        "agent",
        "show",
        "hello.gram",
        "--agent",
        "hello_world_agent",
        "--json",
    ]);
    assert_eq!(object(&one)["name"], "hello_world_agent");
}

#[test]
fn scaffolded_library_binds_and_is_recognised_by_its_content() {
    let project = TestProject::new().with("newsroom.gram", example("newsroom.gram"));
    let wrote = project.run(&["library", "new", "newsroom.gram"]);
    assert!(
        wrote.contains(&format!(
            "windlass bind {} --library {}",
            project.path("newsroom.gram").display(),
            project.path("newsroom.toml").display()
        )),
        "{wrote}"
    );
    let bound = project.run(&["bind", "newsroom.gram", "--library", "newsroom.toml"]);
    assert!(bound.ends_with("--- exit code 0\n"), "{bound}");
    // An existing file is kept.
    let again = project.run(&["library", "new", "newsroom.gram"]);
    assert!(again.contains("cannot create `newsroom.toml`"), "{again}");
    let project = project
        .with(
            "windlass.toml",
            "libraries = [\"newsroom.toml\"]\n[binding]\nmode = \"compatible\"\n",
        )
        .with(
            "wrong.toml",
            "[tools.a]\ndescription = \"Does something\"\n",
        )
        .with("bad.toml", "modle = \"x\"\n");
    let checked = project.run(&["check", "newsroom.toml", "windlass.toml"]);
    assert!(
        checked.contains("newsroom.toml: valid, a library of 2 tools"),
        "{checked}"
    );
    assert!(checked.contains("windlass.toml: valid"), "{checked}");
    let checked = project.run(&["check", "wrong.toml", "bad.toml"]);
    assert!(checked.contains("`name` is missing"), "{checked}");
    assert!(checked.contains("did you mean `model`?"), "{checked}");
    assert!(checked.ends_with("--- exit code 1\n"), "{checked}");
    // The project's libraries and mode are the default of these commands.
    let bound = project.run(&["bind", "newsroom.gram", "--json"]);
    assert_eq!(object(&bound)["mode"], "compatible");
    assert_eq!(object(&bound)["failures"], serde_json::json!([]));
    let described = project.run(&["tools", "describe", "searchArchive"]);
    assert!(
        described.contains("searchArchive of the library `newsroom`"),
        "{described}"
    );
}

#[test]
fn other_description_is_a_note_of_an_exact_binding() {
    let other = example("hello.gram").replace(
        "Returns a friendly greeting message for the given name",
        "Says hello to someone by name",
    );
    let project = TestProject::new().with("hello.gram", other);
    let bound = project.run(&["bind", "hello.gram", "--library", "hello"]);
    assert!(bound.contains("bound to `hello`"), "{bound}");
    assert!(
        bound.contains("note: sayHello: description differs"),
        "{bound}"
    );
    assert!(bound.ends_with("--- exit code 0\n"), "{bound}");
}

#[test]
fn intent_of_a_text_is_shown_as_a_run_would_use_it() {
    let project = project();
    let shown = project.run(&["intent", "Summarize the file notes/plan.txt"]);
    assert!(shown.contains("intent: summarize (confidence"), "{shown}");
    assert!(shown.contains("suggested tools: read_file"), "{shown}");
    assert!(
        shown.contains("parameter path: \"notes/plan.txt\""),
        "{shown}"
    );
    assert!(shown.contains("fallback options: "), "{shown}");
    let shown = project.run(&["intent", "Summarize the file", "--json"]);
    let read = object(&shown);
    assert_eq!(read["intent"]["intent_type"], "summarize");
    assert!(!read["needs"].as_array().unwrap().is_empty(), "{shown}");
    let shown = project.run(&["intent", "My cat likes tuna"]);
    assert!(shown.contains("no intent (closest: "), "{shown}");
    assert!(shown.ends_with("--- exit code 1\n"), "{shown}");
}

#[test]
fn run_is_found_by_its_task_the_end_of_its_id_or_as_the_last_one() {
    let tasks = "{\"task_id\": \"greeting-7\", \"description\": \"Greet Ada\"}\n";
    let project = project().with("tasks.jsonl", tasks);
    let model = ["--library", "hello", "--model", "reflex"];
    project.run(&[&["run", "hello.gram", "Greet Grace"][..], &model].concat());
    project.run(&[&["run", "hello.gram", "--tasks", "tasks.jsonl"][..], &model].concat());
    let listed = project.run(&["trace", "list", "--json", "--limit", "1"]);
    let latest = object(&listed);
    assert_eq!(latest["task_id"], "greeting-7");
    let id = latest["run"].as_str().unwrap();
    let head = format!("run {id} of agent");
    let end = &id[id.len() - 6..];
    for which in ["greeting-7", end, &id[..30], "--last"] {
        let shown = project.run(&["trace", "show", which]);
        assert!(shown.contains(&head), "{which}: {shown}");
    }
    let short = project.run(&["trace", "show", &id[id.len() - 3..]]);
    assert!(short.contains("begins with"), "{short}");
    let shown = project.run(&["runs", "show", end, "--json"]);
    assert_eq!(object(&shown)["task_id"], "greeting-7");
}

#[test]
fn purge_can_be_previewed() {
    let project = project();
    let model = ["--library", "hello", "--model", "reflex"];
    project.run(&[&["run", "hello.gram", "Greet Grace"][..], &model].concat());
    let preview = project.run(&["trace", "purge", "--days", "0", "--dry-run"]);
    assert!(
        preview.contains("1 run would be purged, 0 old runs kept"),
        "{preview}"
    );
    let shown = project.run(&["trace", "show", "--last"]);
    assert!(shown.contains("Grace"), "{shown}");
    let purged = project.run(&["trace", "purge", "--days", "0"]);
    assert!(purged.contains("1 run purged"), "{purged}");
    assert!(!preview.contains("  0 events"), "{preview}");
}

#[test]
fn malformed_channel_of_a_task_is_refused_with_the_reason() {
    let tasks = "{\"task_id\": \"one\", \"description\": \"Greet Ada\", \"metadata\": {\"channel_id\": \"general\"}}\n\
                 {\"task_id\": \"two\", \"description\": \"Greet Ada\", \"metadata\": {\"channel_id\": \"C024BE91L\", \
                 \"thread_ts\": \"1729123456.000200\"}}\n\
                 {\"task_id\": \"three\", \"description\": \"Greet Ada\", \"metadata\": {\"thread_ts\": \"now\"}}\n";
    let project = project().with("tasks.jsonl", tasks);
    let arguments = [
        "run",
        "hello.gram",
        "--tasks",
        "tasks.jsonl",
        "--library",
        "hello",
        "--model",
        "reflex",
    ];
    let output = project.run(&[&arguments[..], &["--environment", "staging"]].concat());
    assert!(
        output.contains("tasks.jsonl:1: task `one`: `channel_id` of the task's metadata"),
        "{output}"
    );
    assert!(output.contains("such as C024BE91L"), "{output}");
    assert!(
        output.contains("tasks.jsonl:3: task `three`: `thread_ts`"),
        "{output}"
    );
    assert!(output.contains("1 of 3 tasks"), "{output}");
    // The context of the valid one has the channel, and the environment of the run.
    let shown = project.run(&["trace", "show", "two", "--json"]);
    let context = &object(&shown)["context"];
    assert_eq!(context["channel_id"], "C024BE91L");
    assert_eq!(context["thread_ts"], "1729123456.000200");
    assert_eq!(context["environment"], "staging");
    assert_eq!(context["available_tools"], serde_json::json!(["sayHello"]));
}
