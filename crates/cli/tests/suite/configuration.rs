//! The configuration from the command line: shown, checked, laid over each other, begun with.

use insta::assert_snapshot;
use serde_json::Value;

use super::program::{Place, example};
use super::session::without_ids;

/// A file with ten mistakes, each of another kind.
const TEN_MISTAKES: &str = r#"
environment = "prodction"
libraries = "tools.toml"
[gate]
undo_window = 5
[principals.ada]
permissions = ["chat:wrte"]
[categories.crm]
enabled = true
[categories.file_tools]
rate_limits = { per_minute = 0 }
[categories.file_tools.tools.read_file]
timeout_seconds = 301
[categories.file_tools.tools.write_file]
timeout_seconds = 0
environment_overrides.moon = { enabled = true }
[risk]
send = "harmless"
"#;

fn without_place(place: &Place, told: &str) -> String {
    let directory = place.path("").display().to_string();
    let directory = directory.trim_end_matches('/');
    let resolved = place.path("").canonicalize().unwrap();
    let resolved = resolved.display().to_string();
    told.replace(&resolved, "[place]")
        .replace(directory, "[place]")
}

fn told(place: &Place, arguments: &[&str]) -> String {
    without_place(place, &place.run(arguments))
}

#[test]
fn a_configuration_with_ten_mistakes_shows_ten() {
    let place = Place::new().with("windlass.toml", TEN_MISTAKES);
    let checked = told(&place, &["config", "check"]);
    assert_snapshot!(checked);
    let checked = place.run(&["config", "check", "--json"]);
    let line = checked.lines().find(|line| line.starts_with('{')).unwrap();
    let object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(object["valid"], false);
    assert_eq!(object["errors"].as_array().unwrap().len(), 10);
    // Nothing runs under it.
    let place = place.with("hello.gram", example("hello.gram"));
    let told = place.run(&["run", "hello.gram", "Greet Ada", "--library", "hello"]);
    assert!(
        told.contains("there are 10 mistakes in the configuration"),
        "{told}"
    );
    assert!(told.ends_with("exit code 1\n"), "{told}");
}

#[test]
fn every_value_is_shown_with_where_it_comes_from() {
    let place = Place::new()
        .with(
            "windlass.toml",
            "[gate]\nundo_window_seconds = 5\n[breaker]\nfailures = 7\n",
        )
        .with("admin.toml", "[ceilings]\ntimeout_seconds = 60\n");
    std::fs::create_dir_all(place.path("config/windlass")).unwrap();
    let place = place.with(
        "config/windlass/windlass.toml",
        "environment = \"staging\"\n[gate]\nundo_window_seconds = 7\n",
    );
    let mut shown = String::new();
    for arguments in [
        &["config", "show", "gate"][..],
        &["config", "show", "environment"],
        &["config", "show", "ceilings"],
        &["--set", "breaker.failures=2", "config", "show", "breaker"],
        &["config", "show", "breaker.failures", "--json"],
        &["config", "show", "nothing"],
        &["config", "files"],
    ] {
        shown += &format!(
            "$ windlass {}\n{}",
            arguments.join(" "),
            told(&place, arguments)
        );
    }
    assert_snapshot!(shown);
    let by_variable = place
        .command(&["config", "show", "environment"])
        .env("WINDLASS_ENVIRONMENT", "production")
        .output()
        .unwrap();
    let by_variable = String::from_utf8_lossy(&by_variable.stdout).into_owned();
    assert!(
        by_variable.contains("WINDLASS_ENVIRONMENT"),
        "{by_variable}"
    );
}

#[test]
fn a_ceiling_of_the_machine_is_not_exceeded_by_a_project() {
    let place = Place::new()
        .with("admin.toml", "[ceilings]\ntimeout_seconds = 20\n")
        .with(
            "windlass.toml",
            "[ceilings]\ntimeout_seconds = 200\n[categories.system_tools.tools.get_current_time]\ntimeout_seconds = 100\n",
        );
    let listed = place.run(&["tools", "list", "--library", "builtin", "--json"]);
    let time = listed
        .lines()
        .find(|line| line.contains("get_current_time"));
    let time: Value = serde_json::from_str(time.unwrap()).unwrap();
    assert_eq!(time["timeout_seconds"], 20);
    let checked = told(&place, &["config", "check"]);
    assert!(checked.contains("warning"), "{checked}");
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
}

#[test]
fn a_project_that_was_begun_runs_and_nothing_is_wrong_with_it() {
    let place = Place::new();
    let begun = told(&place, &["init"]);
    assert_snapshot!(begun);
    let again = told(&place, &["init"]);
    assert!(again.contains("left as it is: ./windlass.toml"), "{again}");
    let said = place.run(&["run", "assistant.gram", "Read the file welcome.md"]);
    assert!(said.contains("under the blue pot"), "{said}");
    assert!(said.ends_with("exit code 0\n"), "{said}");
    let checked = place.run(&["check", "assistant.gram"]);
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
    let checked = place.run(&["fmt", "--check", "assistant.gram"]);
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
    let checked = place.run(&["config", "check", "--agent-file", "assistant.gram"]);
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
    let examined = place.run(&["doctor", "--offline", "--json"]);
    let line = examined.lines().find(|line| line.starts_with('{')).unwrap();
    let examined: Value = serde_json::from_str(line).unwrap();
    assert_eq!(examined["ok"], true, "{examined}");
    assert_eq!(examined["warnings"], 0, "{examined}");
    let about = |about: &str| {
        let findings = examined["findings"].as_array().unwrap();
        findings.iter().any(|finding| finding["about"] == about)
    };
    for thing in [
        "configuration",
        "clock",
        "store",
        "files",
        "agents",
        "policies",
        "models",
    ] {
        assert!(about(thing), "{thing} was not looked at: {examined}");
    }
}

#[test]
fn a_doctor_has_a_fix_for_every_finding() {
    let place = Place::new()
        .with(
            "windlass.toml",
            "policies = \"policy.cedar\"\nmodel = \"OpenAI/gpt-4o\"\n[files]\nroots = [\"gone\"]\n\
             [search]\nendpoint = \"http://127.0.0.1:9/search\"\n\
             [categories.file_tools]\npermissions = [\"files:read\"]\n",
        )
        .with(
            "policy.cedar",
            "permit (principal, action == Action::\"nothing\", resource);",
        )
        .with("agent.gram", example("hello.gram"))
        .with("broken.gram", "[a:Agent {");
    let examined = place.run(&["doctor", "--json"]);
    assert!(examined.ends_with("exit code 1\n"), "{examined}");
    let line = examined.lines().find(|line| line.starts_with('{')).unwrap();
    let examined: Value = serde_json::from_str(line).unwrap();
    assert_eq!(examined["ok"], false);
    let findings = examined["findings"].as_array().unwrap();
    for about in [
        "files",
        "agents",
        "policies",
        "models",
        "servers",
        "permissions",
    ] {
        let wrong = findings
            .iter()
            .find(|finding| finding["about"] == about && finding["status"] != "ok");
        let wrong = wrong.unwrap_or_else(|| panic!("nothing wrong with {about}: {examined}"));
        assert!(
            wrong["fix"].as_str().is_some_and(|fix| !fix.is_empty()),
            "{wrong}"
        );
    }
}

#[test]
fn a_category_that_is_switched_off_takes_its_tools_along() {
    let place = Place::new().with(
        "windlass.toml",
        "[categories.system_tools]\nenabled = true\nenvironment_overrides.production = { enabled = false }\n",
    );
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    let said = place.run(&call);
    assert!(said.ends_with("exit code 0\n"), "{said}");
    let said = place.run(&[&call[..], &["--set", "environment=production"]].concat());
    assert!(said.contains("is switched off"), "{said}");
    assert!(said.contains("windlass.toml:3"), "{said}");
    assert!(said.ends_with("exit code 3\n"), "{said}");
    let listed = place.run(&[
        "tools",
        "list",
        "--library",
        "builtin",
        "--set",
        "environment=production",
    ]);
    let time = listed
        .lines()
        .find(|line| line.starts_with("get_current_time"));
    assert!(time.unwrap().contains("registered"), "{listed}");
}

#[test]
fn a_permission_that_nobody_was_given_is_missing_and_one_that_was_is_there() {
    let demand = "[categories.system_tools]\npermissions = [\"web:read\"]\n";
    let place = Place::new().with("windlass.toml", demand);
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    let said = place.run(&call);
    assert!(said.contains("demands `web:read`"), "{said}");
    assert!(said.ends_with("exit code 3\n"), "{said}");
    let given = format!("{demand}[principals.\"*\"]\npermissions = [\"web:read\"]\n");
    let place = place.with("windlass.toml", given);
    assert!(place.run(&call).ends_with("exit code 0\n"));
}

#[test]
fn a_limit_holds_from_one_process_to_the_next() {
    let place = Place::new().with(
        "windlass.toml",
        "[categories.system_tools.tools.get_current_time]\nrate_limits = { per_hour = 2 }\n",
    );
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    for _ in 0..2 {
        assert!(place.run(&call).ends_with("exit code 0\n"));
    }
    let said = place.run(&call);
    assert!(said.contains("per_hour = 2"), "{said}");
    assert!(said.contains("try again at"), "{said}");
    assert!(said.ends_with("exit code 6\n"), "{said}");
}

#[test]
fn calls_of_many_processes_at_once_take_no_more_than_there_is() {
    let place = Place::new().with(
        "windlass.toml",
        "[principals.\"*\"]\nrate_limits = { per_day = 5 }\n",
    );
    place.run(&["runs", "list"]);
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    let children: Vec<_> = (0..12)
        .map(|_| {
            let mut command = place.command(&call);
            command.stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<Option<i32>> = children
        .into_iter()
        .map(|mut child| child.wait().unwrap().code())
        .collect();
    let count = |code| codes.iter().filter(|other| **other == Some(code)).count();
    assert_eq!((count(0), count(6)), (5, 7), "{codes:?}");
}

#[test]
fn an_agent_does_not_write_the_rules_it_is_under() {
    let place = Place::new()
        .with(
            "windlass.toml",
            "policies = \"policy.cedar\"\n[files]\nroots = [\".\"]\n[gate]\nundo_window_seconds = 0\n",
        )
        .with("policy.cedar", "@id(\"all\") permit (principal, action, resource);\n");
    let write = |path: &str| {
        let path = format!("path={path}");
        let call = [
            "tools",
            "call",
            "write_file",
            "--library",
            "builtin",
            "content=x",
        ];
        place.run(&[&call[..], &["mode=overwrite", &path]].concat())
    };
    for path in [
        "windlass.toml",
        "policy.cedar",
        "./sub/../windlass.toml",
        "Windlass.TOML",
        "data/x",
    ] {
        let said = write(path);
        assert!(!said.ends_with("exit code 0\n"), "{path}: {said}");
    }
    assert!(place.read("windlass.toml").contains("policies"));
    assert!(place.read("policy.cedar").contains("permit"));
    assert!(write("notes.txt").ends_with("exit code 0\n"));
    let read = [
        "tools",
        "call",
        "read_file",
        "--library",
        "builtin",
        "path=data/windlass.db",
    ];
    let said = place.run(&read);
    assert!(said.contains("which agents do"), "{said}");
}

#[test]
fn what_is_no_file_keeps_nobody_waiting() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("windlass.toml"))
        .status();
    assert!(made.unwrap().success());
    let said = place.run(&["config", "check"]);
    assert!(said.contains("it is no file"), "{said}");
    std::fs::remove_file(place.path("windlass.toml")).unwrap();
    std::os::unix::fs::symlink("nothing", place.path("admin.toml")).unwrap();
    let said = place.run(&["config", "check"]);
    assert!(said.contains("admin.toml` cannot be read"), "{said}");
}

#[test]
fn executions_are_counted_and_listed() {
    let place = Place::new();
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    place.run(&call);
    place.run(&[&call[..], &["timezone=Nowhere/Land"]].concat());
    let stats = place.run(&["tools", "stats", "--json"]);
    let line = stats.lines().find(|line| line.starts_with('{')).unwrap();
    let stats: Value = serde_json::from_str(line).unwrap();
    assert_eq!(stats["tool"], "get_current_time");
    assert_eq!(stats["success_count"], 1);
    assert_eq!(stats["failure_count"], 1);
    let results = place.run(&["tools", "results", "--json"]);
    let results: Vec<Value> = results
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(results[0]["status"], "error");
    assert!(results[0]["error_message"].is_string());
    assert_eq!(results[1]["status"], "success");
    assert!(results[1]["result_data"].is_string());
    let told = without_ids(&place.run(&["tools", "stats"]));
    assert!(told.contains("50 %"), "{told}");
    let none = place.run(&["tools", "results", "--tool", "sayHello"]);
    assert!(none.contains("no tool was executed"), "{none}");
}
