//! The commands at work.

use std::process::Stdio;

use insta::assert_snapshot;

use super::program::{Place, example};

fn place() -> Place {
    Place::new()
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
fn check_says_what_a_valid_file_declares() {
    assert_snapshot!(place().run(&["check", "hello.gram", "newsroom.gram"]));
}

#[test]
fn check_draws_every_mistake_with_its_line() {
    assert_snapshot!(place().with("broken.gram", BROKEN).run(&[
        "check",
        "broken.gram",
        "hello.gram"
    ]));
}

#[test]
fn check_prints_one_json_object_a_line_for_each_file() {
    let told = place().with("broken.gram", BROKEN).run(&[
        "check",
        "--json",
        "broken.gram",
        "hello.gram",
        "-",
        "none",
    ]);
    assert_snapshot!(told);
}

#[test]
fn check_of_syntax_only_takes_any_gram() {
    let place = Place::new();
    assert_snapshot!(
        place.run_with_input(&["check", "--syntax-only", "-"], "(a:Person)-[:KNOWS]->(b)")
    );
    assert_snapshot!(place.run_with_input(&["check", "--syntax-only", "-"], "(a:Person)->(b)"));
}

#[test]
fn a_warning_does_not_make_a_file_invalid() {
    let place = Place::new();
    let told = place.run_with_input(
        &["check", "-"],
        "[a:Agent {instruction: \"Do it.\", model: \"acme/one\", owner: \"ann\"}]\n",
    );
    assert_snapshot!(told);
}

#[test]
fn colour_only_when_asked_for_or_on_a_terminal() {
    let place = Place::new().with("broken.gram", BROKEN);
    assert!(!place.run(&["check", "broken.gram"]).contains('\u{1b}'));
    assert!(
        place
            .run(&["check", "--color", "always", "broken.gram"])
            .contains('\u{1b}')
    );
    assert!(
        !place
            .run(&["check", "--color", "never", "broken.gram"])
            .contains('\u{1b}')
    );
}

#[test]
fn fmt_rewrites_a_file_once_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new().with("a.gram", "(a  :L)-[ :X ]->( b )\n\n\n\n(c)");
    std::fs::set_permissions(place.path("a.gram"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(place.path("a.gram"), place.path("link.gram")).unwrap();
    assert_snapshot!(place.run(&["fmt", "--check", "link.gram"]));
    assert_snapshot!(place.run(&["fmt", "link.gram"]));
    assert_eq!(place.read("a.gram"), "(a:L)-[:X]->(b)\n\n(c)\n");
    assert!(place.path("link.gram").is_symlink());
    let mode = place
        .path("a.gram")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_snapshot!(place.run(&["fmt", "--check", "link.gram"]));
}

#[test]
fn fmt_leaves_a_broken_file_alone() {
    let place = Place::new().with("a.gram", "(a)->(b)");
    assert_snapshot!(place.run(&["fmt", "a.gram"]));
    assert_eq!(place.read("a.gram"), "(a)->(b)");
}

#[test]
fn fmt_of_standard_input_goes_to_standard_output() {
    assert_snapshot!(Place::new().run_with_input(&["fmt", "-"], "(a){}".replace("{}", "(b)")));
}

#[test]
fn the_examples_are_formatted() {
    assert_snapshot!(place().run(&["fmt", "--check", "hello.gram", "newsroom.gram"]));
}

#[test]
fn schema_prints_what_a_tool_takes_and_returns() {
    let place = place();
    assert_snapshot!(place.run(&["schema", "newsroom.gram"]));
    assert_snapshot!(place.run(&["schema", "hello.gram", "sayHello"]));
    assert_snapshot!(place.run(&["schema", "newsroom.gram", "searchArchive", "--returns"]));
    assert_snapshot!(place.run(&["schema", "hello.gram", "sayHelo"]));
}

#[test]
fn bind_to_either_of_two_libraries_with_the_same_names() {
    let place = place();
    assert_snapshot!(place.run(&["bind", "hello.gram", "--library", "hello"]));
    assert_snapshot!(place.run(&["bind", "hello.gram", "--library", "hello-brief"]));
}

#[test]
fn bind_gives_every_reason_at_once() {
    let place = place().with(
        "other.gram",
        "[a:Agent {instruction: \"Do.\", model: \"m\"} |
           [sayHello:Tool {description: \"Says hello in a friendly way\"} | (name::Int)==>(age::Int)==>(::Int)],
           [sayHelo:Tool {description: \"Says helo in a friendly way\"} | (name::Text)==>(::Text)]]",
    );
    assert_snapshot!(place.run(&["bind", "other.gram", "--library", "hello"]));
    assert_snapshot!(place.run(&[
        "bind",
        "other.gram",
        "--library",
        "hello",
        "--mode",
        "compatible"
    ]));
    assert_snapshot!(place.run(&["bind", "other.gram", "--library", "hello", "--json"]));
    assert_snapshot!(place.run(&["bind", "other.gram", "--library", "hallo"]));
    assert_snapshot!(place.run(&["bind", "other.gram", "--library", "hello", "--agent", "b"]));
}

#[test]
fn bind_in_compatible_mode_takes_an_implementation_that_takes_more() {
    let place = Place::new().with(
        "narrow.gram",
        "[sayHello:Tool {description: \"Greets one of two people\"} | (name::Text {enum: [\"Ann\", \"Bob\"]})==>(::Text)]",
    );
    assert_snapshot!(place.run(&[
        "bind",
        "narrow.gram",
        "--library",
        "hello",
        "--mode",
        "compatible"
    ]));
    assert_snapshot!(place.run(&["bind", "narrow.gram", "--library", "hello"]));
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let place = place();
    let mut child = place
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
fn a_reader_that_stops_reading_does_not_hide_a_failure() {
    let place = Place::new().with("broken.gram", BROKEN);
    for arguments in [
        &["check", "broken.gram"][..],
        &["check", "--json", "broken.gram"],
    ] {
        let mut child = place
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
fn no_number_of_warnings_hides_an_error() {
    let odd: Vec<String> = (0..150)
        .map(|index| format!("odd{index}{index}: 1"))
        .collect();
    let text = format!(
        "[a:Agent {{instruction: \"Do.\", model: \"m\", {}}} | nosuch]",
        odd.join(", ")
    );
    let place = Place::new().with("odd.gram", text);
    let told = place.run(&["check", "odd.gram"]);
    assert!(
        told.contains("`nosuch` is not defined") && told.ends_with("exit code 1\n"),
        "{told}"
    );
    assert!(
        place
            .run(&["check", "--json", "odd.gram"])
            .contains("\"valid\":false")
    );
}

#[test]
fn fmt_goes_on_after_a_file_it_may_not_write_and_leaves_special_files_alone() {
    let place = Place::new()
        .with("fixed.gram", "(a)(b)")
        .with("free.gram", "(a)(b)");
    let mut permissions = place.path("fixed.gram").metadata().unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(place.path("fixed.gram"), permissions).unwrap();
    std::fs::hard_link(place.path("free.gram"), place.path("other.gram")).unwrap();
    assert_snapshot!(place.run(&["fmt", "fixed.gram", "free.gram"]));
    assert_eq!(place.read("fixed.gram"), "(a)(b)");
    assert_eq!(
        place.read("other.gram"),
        "(a)\n(b)\n",
        "both names are the same file still"
    );
}

#[test]
fn help_names_every_command() {
    assert_snapshot!(Place::new().run(&["--help"]));
}
