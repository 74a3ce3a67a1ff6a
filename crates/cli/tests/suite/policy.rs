//! Policies are checked, explained and held against past calls from the command line.

use serde_json::{Value, json};

use super::program::Place;
use super::seeded::{AGENT, Told, begin, open, run_as};

const PERMIT: &str = "@id(\"calls\") permit (principal, action in Action::\"tools\", resource);\n";

/// Large payments are refused, whoever approves them.
const LARGE: &str = r#"
// @match     {"tool": "pay", "input": {"to": "bob", "amount": 750}}
// @not_match {"tool": "pay", "input": {"to": "bob", "amount": 20}}
@id("no-large-payments")
@reason("payments over 500 are made by hand")
forbid (principal, action == Action::"pay", resource)
when { context.input.amount > 500 };
"#;

fn place(policy: &str) -> Place {
    Place::new()
        .with("clerk.gram", AGENT)
        .with("new.cedar", policy)
}

fn check(place: &Place, options: &[&str]) -> Told {
    let arguments = [
        &["policy", "check", "new.cedar", "--agent", "clerk.gram"],
        options,
    ]
    .concat();
    run_as(place, "bea", &arguments)
}

#[test]
fn the_default_policies_are_fine_and_can_be_printed() {
    let place = place("");
    let told = run_as(&place, "bea", &["policy", "check"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.out
            .starts_with("default policies: valid, 4 rules for 0 tools\n"),
        "{told:?}"
    );
    assert!(!told.err.contains("warning"), "{told:?}");
    let told = run_as(&place, "bea", &["policy", "check", "--agent", "clerk.gram"]);
    assert!(
        told.out.contains("4 rules for 4 tools") && told.err.is_empty(),
        "{told:?}"
    );
    let shown = run_as(&place, "bea", &["policy", "show"]);
    assert!(
        shown.out.contains("@id(\"irreversible-asks\")"),
        "{shown:?}"
    );
    let place = place.with("new.cedar", &shown.out);
    assert_eq!(check(&place, &[]).code, 0, "what is printed can be loaded");
}

#[test]
fn a_valid_file_is_told_with_its_rules() {
    let place = place(&format!("{PERMIT}{LARGE}"));
    let told = check(&place, &[]);
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    assert_eq!(
        told.out,
        "new.cedar: valid, 2 rules for 4 tools\n  1:1 permit `calls`\n  \
         5:1 forbid `no-large-payments`: payments over 500 are made by hand\n"
    );
    let told = check(&place, &["--json"]).json();
    assert_eq!((&told["valid"], &told["tools"]), (&json!(true), &json!(4)));
    assert_eq!(told["rules"][1]["effect"], "forbid");
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
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
        let place = place(policy);
        let told = check(&place, &[]);
        assert!(
            told.code == 1 && told.err.contains(place_and_message),
            "{problem}: {told:?}"
        );
        assert_eq!(told.out, "");
        let told = check(&place, &["--json"]);
        assert_eq!(told.code, 1);
        let told = told.json();
        assert_eq!(told["valid"], false);
        assert_eq!(told["errors"][0]["problem"], problem, "{told}");
        assert!(told["errors"][0]["line"].is_u64(), "{told}");

        for arguments in [
            &[
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
            ][..],
            &["policy", "replay", "new.cedar", "--agent", "clerk.gram"],
        ] {
            let told = run_as(&place, "bea", arguments);
            assert!(
                told.code == 1 && told.err.contains(place_and_message),
                "{told:?}"
            );
        }
    }
}

#[test]
fn files_that_are_not_there_or_not_given_are_told() {
    let place = place(LARGE);
    let told = run_as(&place, "bea", &["policy", "check", "old.cedar"]);
    assert!(
        told.code == 1 && told.err.contains("there is no file `old.cedar`"),
        "{told:?}"
    );
    let told = run_as(&place, "bea", &["policy", "check", "new.cedar"]);
    assert!(
        told.code == 1 && told.err.contains("with `--agent`"),
        "{told:?}"
    );
    let told = run_as(
        &place,
        "bea",
        &["policy", "check", "new.cedar", "--agent", "none.gram"],
    );
    assert!(
        told.code == 1 && told.err.contains("there is no file `none.gram`"),
        "{told:?}"
    );
}

#[test]
fn a_decision_is_explained_with_the_risk_it_rests_on() {
    let place = place(&format!("{PERMIT}{LARGE}"));
    let explain = |options: &[&str]| {
        let arguments = [&["policy", "explain", "--agent", "clerk.gram"], options].concat();
        run_as(&place, "bea", &arguments)
    };
    let pay = ["--tool", "pay", "--args", r#"{"to": "bob", "amount": 750}"#];
    let told = explain(&pay);
    for part in [
        "ask",
        "rule `irreversible-asks`",
        "risk: irreversible by declaration",
        "default policies",
    ] {
        assert!(told.out.contains(part), "{part}: {told:?}");
    }
    let told = explain(&[&pay[..], &["--policy", "new.cedar", "--json"]].concat()).json();
    assert_eq!(told["explanation"]["decision"]["verdict"], "deny");
    assert_eq!(
        told["explanation"]["decision"]["rules"],
        json!(["no-large-payments"])
    );
    assert_eq!(told["request"]["principal"], "bea");
    assert_eq!(told["request"]["agent"], "clerk");

    let mail = [
        "--tool",
        "mail",
        "--args",
        r#"{"to": "bob", "text": "hi"}"#,
        "--json",
    ];
    let verdict = |options: &[&str]| {
        let told = explain(&[&mail[..], options].concat()).json();
        told["explanation"]["decision"]["verdict"].clone()
    };
    assert_eq!(verdict(&[]), "hold");
    assert_eq!(verdict(&["--confidence", "0.9"]), "hold");
    assert_eq!(verdict(&["--confidence", "0.5"]), "ask");
    assert_eq!(verdict(&["--tainted"]), "ask");

    explain(&["--tool", "pey"]).is_refused(2, "did you mean `pay`?");
    explain(&["--tool", "pay", "--args", "{}"]).is_refused(2, "/amount");
    explain(&["--tool", "pay", "--args", "x"]).is_refused(2, "not JSON");
    explain(&[&mail[..4], &["--confidence", "2"]].concat()).is_refused(2, "2");
}

#[test]
fn the_environment_is_what_rules_see() {
    let policy = format!(
        "{PERMIT}@id(\"not-here\") forbid (principal, action == Action::\"search\", resource) \
         when {{ context.environment == \"production\" }};"
    );
    let place = place(&policy);
    let verdict = |environment: &str| {
        let told = run_as(
            &place,
            "bea",
            &[
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
                "--environment",
                environment,
                "--json",
            ],
        );
        told.json()["explanation"]["decision"]["verdict"].clone()
    };
    assert_eq!(
        (verdict("production"), verdict("local")),
        (json!("deny"), json!("allow"))
    );
}

#[test]
fn changed_policies_are_held_against_recorded_calls() {
    let place = place(&format!("{PERMIT}{LARGE}"));
    let store = open(&place);
    let pay = |amount: i64| ("pay", json!({"to": "bob", "amount": amount}));
    drop(begin(
        &store,
        "r1",
        &[pay(10), pay(750), ("search", json!({"query": "x"}))],
    ));
    drop(begin(&store, "r2", &[pay(900)]));

    let told = run_as(&place, "bea", &["policy", "replay", "new.cedar"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.err.contains(
            "2 of 4 recorded calls would be decided differently, 0 of them less strictly"
        ),
        "{told:?}"
    );
    assert!(
        told.out
            .contains(r#"r1:1:1 pay {"to":"bob","amount":750}: ask -> deny"#),
        "{told:?}"
    );

    let told = run_as(&place, "bea", &["policy", "replay", "new.cedar", "--json"]);
    let lines: Vec<Value> = told
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let calls: Vec<&Value> = lines.iter().map(|line| &line["call"]).collect();
    assert_eq!(calls, ["r1:1:1", "r2:1:0"]);
    assert_eq!(lines[0]["after"]["rules"], json!(["no-large-payments"]));
    assert_eq!(lines[0]["weaker"], false);

    let place = place.with("none.cedar", PERMIT);
    let told = run_as(
        &place,
        "bea",
        &["policy", "replay", "none.cedar", "--old", "new.cedar"],
    );
    assert!(
        told.err.contains("2 of 4") && told.err.contains("2 of them less strictly"),
        "{told:?}"
    );
    assert!(told.out.contains("deny -> ask (weaker)"), "{told:?}");
    let same = run_as(
        &place,
        "bea",
        &["policy", "replay", "new.cedar", "--old", "new.cedar"],
    );
    assert!(
        same.out.is_empty() && same.err.contains("0 of 4"),
        "{same:?}"
    );

    let other = "[a:Agent {instruction: \"x\", model: \"OpenAI/x\"} | [search:Tool {description: \
                 \"Searches for something\", risk: reversible, typeSignature: \"(query: Text) --> IO Text\"}]]";
    let place = place.with("other.gram", other);
    let told = run_as(
        &place,
        "bea",
        &["policy", "replay", "none.cedar", "--agent", "other.gram"],
    );
    assert!(
        told.err.contains("0 of 1") && told.err.contains("3 calls of tools"),
        "{told:?}"
    );
}
