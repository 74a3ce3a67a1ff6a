//! The commands `check`, `fmt`, `schema` and `bind`.

use std::process::Stdio;

use insta::assert_snapshot;

use super::program::{TestProject, example};

fn project() -> TestProject {
    TestProject::new()
        .with("hello.gram", example("hello.gram"))
        .with("newsroom.gram", example("newsroom.gram"))
}

const BROKEN: &str = "[a:Agent {
  instruction: \"Do it.\",
  modle: \"OpenAI/x\"
} |
  [t:Tool {description: \"Does things for you\"} | (x::Strng)==>(::Text)],
  tt
]
";

#[test]
fn check_summarizes_a_valid_file() {
    assert_snapshot!(project().run(&["check", "hello.gram", "newsroom.gram"]));
}

#[test]
fn check_reports_every_error_with_its_line() {
    assert_snapshot!(project().with("broken.gram", BROKEN).run(&[
        "check",
        "broken.gram",
        "hello.gram"
    ]));
}

#[test]
fn check_prints_one_json_object_per_file() {
    let output = project().with("broken.gram", BROKEN).run(&[
        "check",
        "--json",
        "broken.gram",
        "hello.gram",
        "-",
        "none",
    ]);
    assert_snapshot!(output);
}

#[test]
fn syntax_only_check_accepts_any_gram() {
    let project = TestProject::new();
    assert_snapshot!(
        project.run_with_input(&["check", "--syntax-only", "-"], "(a:Person)-[:KNOWS]->(b)")
    );
    assert_snapshot!(project.run_with_input(&["check", "--syntax-only", "-"], "(a:Person)->(b)"));
}

#[test]
fn a_warning_does_not_make_a_file_invalid() {
    let project = TestProject::new();
    let output = project.run_with_input(
        &["check", "-"],
        "[a:Agent {instruction: \"Do it.\", model: \"acme/one\", owner: \"ann\"}]\n",
    );
    assert_snapshot!(output);
}

#[test]
fn colour_only_when_asked_for_or_on_a_terminal() {
    let project = TestProject::new().with("broken.gram", BROKEN);
    assert!(!project.run(&["check", "broken.gram"]).contains('\u{1b}'));
    assert!(
        project
            .run(&["check", "--color", "always", "broken.gram"])
            .contains('\u{1b}')
    );
    assert!(
        !project
            .run(&["check", "--color", "never", "broken.gram"])
            .contains('\u{1b}')
    );
}

#[test]
fn fmt_rewrites_a_file_once_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = TestProject::new().with("a.gram", "(a  :L)-[ :X ]->( b )\n\n\n\n(c)");
    std::fs::set_permissions(
        project.path("a.gram"),
        std::fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    std::os::unix::fs::symlink(project.path("a.gram"), project.path("link.gram")).unwrap();
    assert_snapshot!(project.run(&["fmt", "--check", "link.gram"]));
    assert_snapshot!(project.run(&["fmt", "link.gram"]));
    assert_eq!(project.read("a.gram"), "(a:L)-[:X]->(b)\n\n(c)\n");
    assert!(project.path("link.gram").is_symlink());
    let mode = project
        .path("a.gram")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_snapshot!(project.run(&["fmt", "--check", "link.gram"]));
}

#[test]
fn fmt_leaves_a_broken_file_alone() {
    let project = TestProject::new().with("a.gram", "(a)->(b)");
    assert_snapshot!(project.run(&["fmt", "a.gram"]));
    assert_eq!(project.read("a.gram"), "(a)->(b)");
}

#[test]
fn fmt_of_standard_input_goes_to_standard_output() {
    assert_snapshot!(
        TestProject::new().run_with_input(&["fmt", "-"], "(a){}".replace("{}", "(b)"))
    );
}

#[test]
fn the_examples_are_formatted() {
    assert_snapshot!(project().run(&["fmt", "--check", "hello.gram", "newsroom.gram"]));
}

#[test]
fn schema_prints_parameters_and_result() {
    let project = project();
    assert_snapshot!(project.run(&["schema", "newsroom.gram"]));
    assert_snapshot!(project.run(&["schema", "hello.gram", "sayHello"]));
    assert_snapshot!(project.run(&["schema", "newsroom.gram", "searchArchive", "--returns"]));
    assert_snapshot!(project.run(&["schema", "hello.gram", "sayHelo"]));
}

#[test]
fn bind_to_either_of_two_libraries_with_the_same_names() {
    let project = project();
    assert_snapshot!(project.run(&["bind", "hello.gram", "--library", "hello"]));
    assert_snapshot!(project.run(&["bind", "hello.gram", "--library", "hello-brief"]));
}

#[test]
fn bind_reports_every_reason_at_once() {
    let project = project().with(
        "other.gram",
        "[a:Agent {instruction: \"Do.\", model: \"m\"} |
           [sayHello:Tool {description: \"Says hello in a friendly way\"} | (name::Int)==>(age::Int)==>(::Int)],
           [sayHelo:Tool {description: \"Says helo in a friendly way\"} | (name::Text)==>(::Text)]]",
    );
    assert_snapshot!(project.run(&["bind", "other.gram", "--library", "hello"]));
    assert_snapshot!(project.run(&[
        "bind",
        "other.gram",
        "--library",
        "hello",
        "--mode",
        "compatible"
    ]));
    assert_snapshot!(project.run(&["bind", "other.gram", "--library", "hello", "--json"]));
    assert_snapshot!(project.run(&["bind", "other.gram", "--library", "hallo"]));
    assert_snapshot!(project.run(&["bind", "other.gram", "--library", "hello", "--agent", "b"]));
}

#[test]
fn compatible_mode_accepts_a_wider_implementation() {
    let project = TestProject::new().with(
        "narrow.gram",
        "[sayHello:Tool {description: \"Greets one of two people\"} | (name::Text {enum: [\"Ann\", \"Bob\"]})==>(::Text)]",
    );
    assert_snapshot!(project.run(&[
        "bind",
        "narrow.gram",
        "--library",
        "hello",
        "--mode",
        "compatible"
    ]));
    assert_snapshot!(project.run(&["bind", "narrow.gram", "--library", "hello"]));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let project = project();
    let mut child = project
        .command(&["schema", "newsroom.gram"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn closed_pipe_does_not_hide_a_failure() {
    let project = TestProject::new().with("broken.gram", BROKEN);
    for arguments in [
        &["check", "broken.gram"][..],
        &["check", "--json", "broken.gram"],
    ] {
        let mut child = project
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn many_warnings_do_not_hide_an_error() {
    let odd: Vec<String> = (0..150)
        .map(|index| format!("odd{index}{index}: 1"))
        .collect();
    let text = format!(
        "[a:Agent {{instruction: \"Do.\", model: \"m\", {}}} | nosuch]",
        odd.join(", ")
    );
    let project = TestProject::new().with("odd.gram", text);
    let output = project.run(&["check", "odd.gram"]);
    assert!(
        output.contains("`nosuch` is not defined") && output.ends_with("exit code 1\n"),
        "{output}"
    );
    assert!(
        project
            .run(&["check", "--json", "odd.gram"])
            .contains("\"valid\":false")
    );
}

#[test]
fn fmt_continues_after_a_read_only_file_and_keeps_hard_links() {
    let project = TestProject::new()
        .with("fixed.gram", "(a)(b)")
        .with("free.gram", "(a)(b)");
    let mut permissions = project.path("fixed.gram").metadata().unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(project.path("fixed.gram"), permissions).unwrap();
    std::fs::hard_link(project.path("free.gram"), project.path("other.gram")).unwrap();
    assert_snapshot!(project.run(&["fmt", "fixed.gram", "free.gram"]));
    assert_eq!(project.read("fixed.gram"), "(a)(b)");
    assert_eq!(
        project.read("other.gram"),
        "(a)\n(b)\n",
        "both names are still the same file"
    );
}

#[test]
fn help_names_every_command() {
    assert_snapshot!(TestProject::new().run(&["--help"]));
}
