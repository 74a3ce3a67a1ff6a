//! Tests of the `#[tool]` attribute: the tool matches its function.

use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_spec::Signature;
use windlass_tools::{Tool, ToolType, tool};

/// Returns a friendly greeting message
/// for the given name
///
/// This is for maintainers.
#[tool(name = "sayHello")]
async fn say_hello(
    /// Who to greet
    name: String,
) -> String {
    format!("Hello, {name}! Nice to meet you.")
}

/// Finds files by name
#[tool]
fn find(
    /// What the name contains
    pattern: String,
    /// How many files to return
    #[default(10)]
    limit: u32,
    #[default(["src", "tests"])] folders: Vec<String>,
    mut kinds: Option<Vec<Kind>>,
    r#type: Option<String>,
) -> Result<Vec<Found>, std::num::ParseIntError> {
    let at: u32 = pattern.parse()?;
    kinds.get_or_insert_default().push(Kind::SymbolicLink);
    let folder = folders.into_iter().next().unwrap_or_default();
    Ok(vec![Found {
        path: folder,
        line: (at < limit).then_some(at),
        kind: r#type,
    }])
}

#[derive(Debug, PartialEq, Serialize, Deserialize, ToolType)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    File,
    SymbolicLink,
}

#[derive(Debug, PartialEq, Serialize, ToolType)]
struct Found {
    path: String,
    line: Option<u32>,
    kind: Option<String>,
}

#[tool(description = "Tells the time", name = "clock")]
fn arguments() -> anyhow_like::Result<String> {
    Ok("noon".to_owned())
}

/// A function may hide behind a parameter of its own name
#[tool]
fn echo(echo: String, arguments: String) -> String {
    echo + &arguments
}

mod anyhow_like {
    pub(super) type Result<T> = std::result::Result<T, std::fmt::Error>;
}

/// Checks that the tool has the schemas of the signature.
#[track_caller]
fn assert_signature(tool: &Tool, signature: &str) {
    let signature = Signature::parse(signature).unwrap();
    assert_eq!(tool.schema(), &signature.parameters_schema());
    assert_eq!(tool.returns_schema(), Some(&signature.returns_schema()));
}

#[test]
fn the_function_becomes_a_tool_with_its_doc_comments_as_descriptions() {
    let tool = say_hello_tool().unwrap();
    assert_eq!(tool.name().as_str(), "sayHello");
    assert_eq!(
        tool.description(),
        "Returns a friendly greeting message for the given name"
    );
    assert_signature(&tool, r#"(name: Text "Who to greet") --> IO Text"#);
}

#[test]
fn the_function_stays_callable() {
    let mut greeting = Box::pin(say_hello("Ada".to_owned()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(
        greeting.as_mut().poll(&mut context),
        std::task::Poll::Ready("Hello, Ada! Nice to meet you.".to_owned())
    );
    assert_eq!(echo("a".to_owned(), "b".to_owned()), "ab");
    assert!(find("x".to_owned(), 1, Vec::new(), None, None).is_err());
    let found = find("3".to_owned(), 9, vec!["src".to_owned()], None, None).unwrap();
    assert_eq!(
        found,
        [Found {
            path: "src".to_owned(),
            line: Some(3),
            kind: None
        }]
    );
}

#[test]
fn defaults_options_and_results_are_in_the_signature() {
    assert_signature(
        &find_tool().unwrap(),
        r#"(pattern: Text "What the name contains",
            limit: Int = 10 "How many files to return",
            folders: [Text] = ["src", "tests"],
            kinds: Maybe ["file" | "symbolic-link"],
            type: Maybe Text)
           --> IO [{path: Text, line: Maybe Int, kind: Maybe Text}]"#,
    );
}

#[test]
fn the_name_defaults_to_that_of_the_function_and_the_description_can_be_given() {
    assert_eq!(find_tool().unwrap().name().as_str(), "find");
    let clock = arguments_tool().unwrap();
    assert_eq!(
        (clock.name().as_str(), clock.description()),
        ("clock", "Tells the time")
    );
    assert_signature(&clock, "() --> IO Text");
    assert_signature(
        &echo_tool().unwrap(),
        "(echo: Text, arguments: Text) --> IO Text",
    );
}

#[test]
fn a_default_of_another_type_is_an_error_when_the_tool_is_built() {
    /// Waits
    #[tool]
    fn wait(#[default("long")] seconds: u8) -> u8 {
        seconds
    }
    assert_eq!(
        wait_tool().unwrap_err().to_string(),
        "the tool `wait` cannot be built\n  the signature is inconsistent: \
         the default of `seconds` does not fit: expected Int, found \"long\""
    );
}

mod other_path {
    //! Code that refers to the tools by another path, as users of a facade crate do.

    pub(super) mod tools {
        pub(in crate::suite) use windlass_tools::{__private, ToolType, tool};
    }

    #[derive(serde::Serialize, tools::ToolType)]
    #[tool_type(crate = crate::suite::attribute::other_path::tools)]
    pub(super) struct Place {
        name: String,
    }

    /// Says where
    #[tools::tool(crate = self::tools)]
    pub(super) fn locate() -> Place {
        Place {
            name: "here".to_owned(),
        }
    }
}

#[test]
fn the_crate_path_can_be_set() {
    assert_signature(
        &other_path::locate_tool().unwrap(),
        "() --> IO {name: Text}",
    );
    assert_eq!(
        serde_json::to_value(other_path::locate()).unwrap(),
        json!({"name": "here"})
    );
}
