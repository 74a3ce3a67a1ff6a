//! Policies: check, explain and replay.

use serde_json::{Value, json};

use super::program::TestProject;
use super::seeded::{AGENT, CommandOutput, open, run_as, start_run};

const PERMIT: &str = "@id(\"calls\") permit (principal, action in Action::\"tools\", resource);\n";

/// Denies large payments.
const LARGE: &str = r#"
// @match     {"tool": "pay", "input": {"to": "bob", "amount": 750}}
// @not_match {"tool": "pay", "input": {"to": "bob", "amount": 20}}
@id("no-large-payments")
@reason("payments over 500 are made by hand")
forbid (principal, action == Action::"pay", resource)
when { context.input.amount > 500 };
"#;

fn project(policy: &str) -> TestProject {
    TestProject::new()
        .with("clerk.gram", AGENT)
        .with("new.cedar", policy)
}

fn check(project: &TestProject, options: &[&str]) -> CommandOutput {
    let arguments = [
        &["policy", "check", "new.cedar", "--agent", "clerk.gram"],
        options,
    ]
    .concat();
    run_as(project, "bea", &arguments)
}

/// Explains a call of `search` with the policy `new.cedar`.
const EXPLAIN: [&str; 10] = [
    "policy",
    "explain",
    "--agent",
    "clerk.gram",
    "--tool",
    "search",
    "--args",
    "{\"query\": \"x\"}",
    "--policy",
    "new.cedar",
];

#[test]
fn default_policies_are_valid_and_can_be_printed() {
    let project = project("");
    let output = run_as(&project, "bea", &["policy", "check"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output
            .out
            .starts_with("default policies: valid, 4 rules for 0 tools\n"),
        "{output:?}"
    );
    assert!(!output.err.contains("warning"), "{output:?}");
    let output = run_as(
        &project,
        "bea",
        &["policy", "check", "--agent", "clerk.gram"],
    );
    assert!(
        output.out.contains("4 rules for 4 tools") && output.err.is_empty(),
        "{output:?}"
    );
    let shown = run_as(&project, "bea", &["policy", "show"]);
    assert!(
        shown.out.contains("@id(\"irreversible-asks\")"),
        "{shown:?}"
    );
    let project = project.with("new.cedar", &shown.out);
    assert_eq!(
        check(&project, &[]).code,
        0,
        "what is printed can be loaded"
    );
}

#[test]
fn check_of_a_valid_file_lists_its_rules() {
    let project = project(&format!("{PERMIT}{LARGE}"));
    let output = check(&project, &[]);
    assert_eq!((output.code, output.err.as_str()), (0, ""), "{output:?}");
    assert_eq!(
        output.out,
        "new.cedar: valid, 2 rules for 4 tools\n  1:1 permit `calls`\n  \
         5:1 forbid `no-large-payments`: payments over 500 are made by hand\n"
    );
    let output = check(&project, &["--json"]).json();
    assert_eq!(
        (&output["valid"], &output["tools"]),
        (&json!(true), &json!(4))
    );
    assert_eq!(output["rules"][1]["effect"], "forbid");
}

#[test]
fn policy_errors_are_reported_with_their_location() {
    for (policy, place_and_message, problem) in [
        (
            "permit (principal, action, resource)",
            "new.cedar:1:",
            "syntax",
        ),
        (
            &LARGE.replace("input.amount", "input.amout"),
            "new.cedar:7:22: rule `no-large-payments`: the tool `pay` has no argument `amout` that a rule \
             can name; did you mean `amount`?",
            "unknown_argument",
        ),
        (
            &format!(
                "{PERMIT}@id(\"x\") forbid (principal, action, resource) when {{ context.mood == 1 }};"
            ),
            "new.cedar:2:",
            "unknown_attribute",
        ),
        (
            &LARGE.replace("\"amount\": 20", "\"amount\": 800"),
            "rule `no-large-payments`: the example",
            "example_failed",
        ),
        (
            &PERMIT.replace("@id(\"calls\") ", ""),
            "new.cedar:1:1: the rule has no @id",
            "missing_id",
        ),
    ] {
        let project = project(policy);
        let output = check(&project, &[]);
        assert!(
            output.code == 1 && output.err.contains(place_and_message),
            "{problem}: {output:?}"
        );
        assert_eq!(output.out, "");
        let output = check(&project, &["--json"]);
        assert_eq!(output.code, 1);
        let output = output.json();
        assert_eq!(output["valid"], false);
        assert_eq!(output["errors"][0]["problem"], problem, "{output}");
        assert!(output["errors"][0]["line"].is_u64(), "{output}");

        for arguments in [
            &EXPLAIN[..],
            &["policy", "replay", "new.cedar", "--agent", "clerk.gram"],
        ] {
            let output = run_as(&project, "bea", arguments);
            assert!(
                output.code == 1 && output.err.contains(place_and_message),
                "{output:?}"
            );
        }
    }
}

#[test]
fn missing_files_are_reported() {
    let project = project(LARGE);
    let output = run_as(&project, "bea", &["policy", "check", "old.cedar"]);
    assert!(
        output.code == 1 && output.err.contains("file `old.cedar` not found"),
        "{output:?}"
    );
    let output = run_as(&project, "bea", &["policy", "check", "new.cedar"]);
    assert!(
        output.code == 1 && output.err.contains("with `--agent`"),
        "{output:?}"
    );
    let output = run_as(
        &project,
        "bea",
        &["policy", "check", "new.cedar", "--agent", "none.gram"],
    );
    assert!(
        output.code == 1 && output.err.contains("file `none.gram` not found"),
        "{output:?}"
    );
}

#[test]
fn decision_is_explained_with_its_risk() {
    let project = project(&format!("{PERMIT}{LARGE}"));
    let explain = |options: &[&str]| {
        let arguments = [&["policy", "explain", "--agent", "clerk.gram"], options].concat();
        run_as(&project, "bea", &arguments)
    };
    let pay = ["--tool", "pay", "--args", r#"{"to": "bob", "amount": 750}"#];
    let output = explain(&pay);
    for part in [
        "ask",
        "rule `irreversible-asks`",
        "risk: irreversible by declaration",
        "default policies",
    ] {
        assert!(output.out.contains(part), "{part}: {output:?}");
    }
    let output = explain(&[&pay[..], &["--policy", "new.cedar", "--json"]].concat()).json();
    assert_eq!(output["explanation"]["decision"]["verdict"], "deny");
    assert_eq!(
        output["explanation"]["decision"]["rules"],
        json!(["no-large-payments"])
    );
    assert_eq!(output["request"]["principal"], "bea");
    assert_eq!(output["request"]["agent"], "clerk");

    let mail = [
        "--tool",
        "mail",
        "--args",
        r#"{"to": "bob", "text": "hi"}"#,
        "--json",
    ];
    let verdict = |options: &[&str]| {
        let output = explain(&[&mail[..], options].concat()).json();
        output["explanation"]["decision"]["verdict"].clone()
    };
    assert_eq!(verdict(&[]), "hold");
    assert_eq!(verdict(&["--confidence", "0.9"]), "hold");
    assert_eq!(verdict(&["--confidence", "0.5"]), "ask");
    assert_eq!(verdict(&["--tainted"]), "ask");

    explain(&["--tool", "pey"]).assert_refused(2, "did you mean `pay`?");
    explain(&["--tool", "pay", "--args", "{}"]).assert_refused(2, "/amount");
    explain(&["--tool", "pay", "--args", "x"]).assert_refused(2, "not JSON");
    explain(&[&mail[..4], &["--confidence", "2"]].concat()).assert_refused(2, "2");
}

#[test]
fn rules_see_the_environment() {
    let policy = format!(
        "{PERMIT}@id(\"not-here\") forbid (principal, action == Action::\"search\", resource) \
         when {{ context.environment == \"production\" }};"
    );
    let project = project(&policy);
    let verdict = |environment: &str| {
        let output = run_as(
            &project,
            "bea",
            &[&EXPLAIN[..], &["--environment", environment, "--json"]].concat(),
        );
        output.json()["explanation"]["decision"]["verdict"].clone()
    };
    assert_eq!(
        (verdict("production"), verdict("local")),
        (json!("deny"), json!("allow"))
    );
}

#[test]
fn changed_policies_are_replayed_on_recorded_calls() {
    let project = project(&format!("{PERMIT}{LARGE}"));
    let store = open(&project);
    let pay = |amount: i64| ("pay", json!({"to": "bob", "amount": amount}));
    drop(start_run(
        &store,
        "r1",
        &[pay(10), pay(750), ("search", json!({"query": "x"}))],
    ));
    drop(start_run(&store, "r2", &[pay(900)]));

    let output = run_as(&project, "bea", &["policy", "replay", "new.cedar"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.err.contains(
            "2 of 4 decisions about recorded calls would change, 0 of them to a less strict one"
        ),
        "{output:?}"
    );
    assert!(
        output
            .out
            .contains(r#"r1:1:1 pay {"to":"bob","amount":750}: ask -> deny"#),
        "{output:?}"
    );

    let output = run_as(
        &project,
        "bea",
        &["policy", "replay", "new.cedar", "--json"],
    );
    let lines: Vec<Value> = output
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let calls: Vec<&Value> = lines.iter().map(|line| &line["call"]).collect();
    assert_eq!(calls, ["r1:1:1", "r2:1:0"]);
    assert_eq!(lines[0]["after"]["rules"], json!(["no-large-payments"]));
    assert_eq!(lines[0]["weaker"], false);

    let project = project.with("none.cedar", PERMIT);
    let output = run_as(
        &project,
        "bea",
        &["policy", "replay", "none.cedar", "--old", "new.cedar"],
    );
    assert!(
        output.err.contains("2 of 4") && output.err.contains("2 of them to a less strict one"),
        "{output:?}"
    );
    assert!(output.out.contains("deny -> ask (weaker)"), "{output:?}");
    let same = run_as(
        &project,
        "bea",
        &["policy", "replay", "new.cedar", "--old", "new.cedar"],
    );
    assert!(
        same.out.is_empty() && same.err.contains("0 of 4"),
        "{same:?}"
    );

    let other = "[a:Agent {instruction: \"x\", model: \"OpenAI/x\"} | [search:Tool {description: \
                 \"Searches for something\", risk: reversible, typeSignature: \"(query: Text) --> IO Text\"}]]";
    let project = project.with("other.gram", other);
    let output = run_as(
        &project,
        "bea",
        &["policy", "replay", "none.cedar", "--agent", "other.gram"],
    );
    assert!(
        output.err.contains("0 of 1") && output.err.contains("3 calls of tools"),
        "{output:?}"
    );
}
