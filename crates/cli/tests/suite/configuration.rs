//! The configuration: `config`, `init`, `doctor`, layers, limits and permissions.

use insta::assert_snapshot;
use serde_json::Value;

use super::program::{TestProject, example};
use super::session::without_ids;

/// A file with ten errors of different kinds.
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

fn without_paths(project: &TestProject, output: &str) -> String {
    let directory = project.path("").display().to_string();
    let directory = directory.trim_end_matches('/');
    let resolved = project.path("").canonicalize().unwrap();
    let resolved = resolved.display().to_string();
    output
        .replace(&resolved, "[place]")
        .replace(directory, "[place]")
}

fn run_normalized(project: &TestProject, arguments: &[&str]) -> String {
    without_paths(project, &project.run(arguments))
}

#[test]
fn every_configuration_error_is_reported() {
    let project = TestProject::new().with("windlass.toml", TEN_MISTAKES);
    let checked = run_normalized(&project, &["config", "check"]);
    assert_snapshot!(checked);
    let checked = project.run(&["config", "check", "--json"]);
    let line = checked.lines().find(|line| line.starts_with('{')).unwrap();
    let object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(object["valid"], false);
    assert_eq!(object["errors"].as_array().unwrap().len(), 10);
    // No run starts with it.
    let project = project.with("hello.gram", example("hello.gram"));
    let output = project.run(&["run", "hello.gram", "Greet Ada", "--library", "hello"]);
    assert!(
        output.contains("the configuration has 10 errors"),
        "{output}"
    );
    assert!(output.ends_with("exit code 1\n"), "{output}");
}

#[test]
fn values_are_shown_with_their_origin() {
    let project = TestProject::new()
        .with(
            "windlass.toml",
            "[gate]\nundo_window_seconds = 5\n[breaker]\nfailures = 7\n",
        )
        .with("admin.toml", "[ceilings]\ntimeout_seconds = 60\n");
    std::fs::create_dir_all(project.path("config/windlass")).unwrap();
    let project = project.with(
        "config/windlass/windlass.toml",
        "environment = \"staging\"\n[gate]\nundo_window_seconds = 3\n",
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
            run_normalized(&project, arguments)
        );
    }
    assert_snapshot!(shown);
    let by_variable = project
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
fn project_cannot_exceed_a_ceiling_of_the_machine() {
    let project = TestProject::new()
        .with("admin.toml", "[ceilings]\ntimeout_seconds = 20\n")
        .with(
            "windlass.toml",
            "[ceilings]\ntimeout_seconds = 200\n[categories.system_tools.tools.get_current_time]\ntimeout_seconds = 100\n",
        );
    let listed = project.run(&["tools", "list", "--library", "builtin", "--json"]);
    let time = listed
        .lines()
        .find(|line| line.contains("get_current_time"));
    let time: Value = serde_json::from_str(time.unwrap()).unwrap();
    assert_eq!(time["timeout_seconds"], 20);
    let checked = run_normalized(&project, &["config", "check"]);
    assert!(checked.contains("warning"), "{checked}");
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
}

#[test]
fn initialized_project_runs_without_findings() {
    let project = TestProject::new();
    let begun = run_normalized(&project, &["init"]);
    assert_snapshot!(begun);
    let again = run_normalized(&project, &["init"]);
    assert!(again.contains("kept: ./windlass.toml"), "{again}");
    let output = project.run(&["run", "assistant.gram", "Read the file welcome.md"]);
    assert!(output.contains("under the blue pot"), "{output}");
    assert!(output.ends_with("exit code 0\n"), "{output}");
    let checked = project.run(&["check", "assistant.gram"]);
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
    let checked = project.run(&["fmt", "--check", "assistant.gram"]);
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
    let checked = project.run(&["config", "check", "--agent-file", "assistant.gram"]);
    assert!(checked.ends_with("exit code 0\n"), "{checked}");
    let examined = project.run(&["doctor", "--offline", "--json"]);
    let line = examined.lines().find(|line| line.starts_with('{')).unwrap();
    let examined: Value = serde_json::from_str(line).unwrap();
    assert_eq!(examined["ok"], true, "{examined}");
    // What the system gives to isolate programs depends on the machine. Otherwise, the only finding is that the
    // declared model has no key.
    let wrong = |examined: &Value| -> Vec<Value> {
        let findings = examined["findings"].as_array().unwrap().iter();
        let wrong =
            findings.filter(|finding| finding["status"] != "ok" && finding["about"] != "isolation");
        wrong.map(|finding| finding["about"].clone()).collect()
    };
    assert_eq!(wrong(&examined), ["models"], "{examined}");
    let mut with_key = project.command(&["doctor", "--offline", "--json"]);
    let with_key = with_key.env("OPENAI_API_KEY", "a key").output().unwrap();
    let with_key: Value = serde_json::from_slice(&with_key.stdout).unwrap();
    assert!(wrong(&with_key).is_empty(), "{with_key}");
    let about = |about: &str| {
        let findings = examined["findings"].as_array().unwrap();
        findings.iter().any(|finding| finding["about"] == about)
    };
    for thing in [
        "configuration",
        "clock",
        "store",
        "isolation",
        "files",
        "agents",
        "policies",
        "models",
    ] {
        assert!(about(thing), "{thing} was not checked: {examined}");
    }
}

#[test]
fn doctor_proposes_a_fix_for_every_finding() {
    let project = TestProject::new()
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
    let examined = project.run(&["doctor", "--json"]);
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
fn disabling_a_category_disables_its_tools() {
    let project = TestProject::new().with(
        "windlass.toml",
        "[categories.system_tools]\nenabled = true\nenvironment_overrides.production = { enabled = false }\n",
    );
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    let output = project.run(&call);
    assert!(output.ends_with("exit code 0\n"), "{output}");
    let output = project.run(&[&call[..], &["--set", "environment=production"]].concat());
    assert!(output.contains("is switched off"), "{output}");
    assert!(output.contains("windlass.toml:3"), "{output}");
    assert!(output.ends_with("exit code 3\n"), "{output}");
    let listed = project.run(&[
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
fn call_is_denied_without_and_allowed_with_the_permission() {
    let demand = "[categories.system_tools]\npermissions = [\"web:read\"]\n";
    let project = TestProject::new().with("windlass.toml", demand);
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    let output = project.run(&call);
    assert!(output.contains("requires `web:read`"), "{output}");
    assert!(output.ends_with("exit code 3\n"), "{output}");
    let given = format!("{demand}[principals.\"*\"]\npermissions = [\"web:read\"]\n");
    let project = project.with("windlass.toml", given);
    assert!(project.run(&call).ends_with("exit code 0\n"));
}

#[test]
fn rate_limit_applies_across_processes() {
    let project = TestProject::new().with(
        "windlass.toml",
        "[categories.system_tools.tools.get_current_time]\nrate_limits = { per_hour = 2 }\n",
    );
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    for _ in 0..2 {
        assert!(project.run(&call).ends_with("exit code 0\n"));
    }
    let output = project.run(&call);
    assert!(output.contains("per_hour = 2"), "{output}");
    assert!(output.contains("try again at"), "{output}");
    assert!(output.ends_with("exit code 6\n"), "{output}");
}

#[test]
fn rate_limit_holds_for_concurrent_processes() {
    let project = TestProject::new().with(
        "windlass.toml",
        "[principals.\"*\"]\nrate_limits = { per_day = 5 }\n",
    );
    project.run(&["runs", "list"]);
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    let children: Vec<_> = (0..12)
        .map(|_| {
            let mut command = project.command(&call);
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
fn agent_cannot_write_its_configuration_and_policies() {
    let project = TestProject::new()
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
        project.run(&[&call[..], &["mode=overwrite", &path]].concat())
    };
    for path in [
        "windlass.toml",
        "policy.cedar",
        "./sub/../windlass.toml",
        "Windlass.TOML",
        "data/x",
    ] {
        let output = write(path);
        assert!(!output.ends_with("exit code 0\n"), "{path}: {output}");
    }
    assert!(project.read("windlass.toml").contains("policies"));
    assert!(project.read("policy.cedar").contains("permit"));
    assert!(write("notes.txt").ends_with("exit code 0\n"));
    let read = [
        "tools",
        "call",
        "read_file",
        "--library",
        "builtin",
        "path=data/windlass.db",
    ];
    let output = project.run(&read);
    assert!(output.contains("agents must not access"), "{output}");
}

#[test]
fn configuration_path_that_is_not_a_file_does_not_block() {
    let project = TestProject::new();
    let made = std::process::Command::new("mkfifo")
        .arg(project.path("windlass.toml"))
        .status();
    assert!(made.unwrap().success());
    let output = project.run(&["config", "check"]);
    assert!(output.contains("it is not a regular file"), "{output}");
    std::fs::remove_file(project.path("windlass.toml")).unwrap();
    std::os::unix::fs::symlink("nothing", project.path("admin.toml")).unwrap();
    let output = project.run(&["config", "check"]);
    assert!(output.contains("admin.toml` cannot be read"), "{output}");
}

#[test]
fn executions_are_counted_and_listed() {
    let project = TestProject::new();
    let call = ["tools", "call", "get_current_time", "--library", "builtin"];
    project.run(&call);
    project.run(&[&call[..], &["timezone=Nowhere/Land"]].concat());
    let stats = project.run(&["tools", "stats", "--json"]);
    let line = stats.lines().find(|line| line.starts_with('{')).unwrap();
    let stats: Value = serde_json::from_str(line).unwrap();
    assert_eq!(stats["tool"], "get_current_time");
    assert_eq!(stats["success_count"], 1);
    assert_eq!(stats["failure_count"], 1);
    let results = project.run(&["tools", "results", "--json"]);
    let results: Vec<Value> = results
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(results[0]["status"], "error");
    assert!(results[0]["error_message"].is_string());
    assert_eq!(results[1]["status"], "success");
    assert!(results[1]["result_data"].is_string());
    let output = without_ids(&project.run(&["tools", "stats"]));
    assert!(output.contains("50 %"), "{output}");
    let none = project.run(&["tools", "results", "--tool", "sayHello"]);
    assert!(none.contains("no tools have been called"), "{none}");
}
