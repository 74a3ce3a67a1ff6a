//! Tests of library files.

use std::path::Path;

use serde_json::json;
use windlass_core::run::CallEnd;
use windlass_tools::{BindingMode, ToolLibrary, bind};

use super::permits::call;

fn read(text: &str) -> Result<ToolLibrary, String> {
    ToolLibrary::from_toml(text, Path::new("/")).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.join("\n")
    })
}

#[tokio::test]
async fn the_newsroom_runs_from_its_example_library() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(examples.join("newsroom.toml")).unwrap();
    let library = ToolLibrary::from_toml(&text, &examples).unwrap();
    let gram = std::fs::read_to_string(examples.join("newsroom.gram")).unwrap();
    let file = windlass_spec::read(&gram).file.unwrap();
    let mut bound_tools = 0;
    for agent in file.agents() {
        let tools = bind(agent, &library, BindingMode::Exact).unwrap();
        for tool in &tools {
            bound_tools += 1;
            match tool.name().as_str() {
                "searchArchive" => {
                    let end = call(tool, json!({"query": "tram"})).await;
                    let CallEnd::Success(headlines) = end else {
                        panic!("{end:?}");
                    };
                    assert_eq!(headlines[1], "Council votes for a second tram line");
                }
                "publishArticle" => {
                    let article = json!({"title": "Trams", "body": "Two lines.", "tags": []});
                    let end = call(tool, json!({"article": article})).await;
                    let CallEnd::Success(published) = end else {
                        panic!("{end:?}");
                    };
                    assert!(published.as_str().unwrap().contains("\"title\":\"Trams\""));
                }
                other => panic!("{other}"),
            }
        }
    }
    assert!(bound_tools >= 1);
}

#[test]
fn tools_keep_the_order_of_the_file() {
    let library = read(
        r#"
        name = "desk"
        [tools]
        search = { description = "Searches documents", signature = "(query: Text) --> IO Text", http = { method = "GET", url = "https://api.example.org/search/{query}", allowed_hosts = ["api.example.org"], headers = { Authorization = "env:SEARCH_TOKEN", Accept = "text/plain" } } }
        greet = { builtin = "hello/sayHello", description = "Greets someone", signature = "(name: Text) --> IO Text" }
        count = { description = "Counts lines", signature = "() --> IO Int", command = ["wc", "-l"], environment = ["LC_ALL"], directory = "tmp" }
        "#,
    )
    .unwrap();
    assert_eq!(library.name(), "desk");
    let names: Vec<&str> = library.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(names, ["search", "greet", "count"]);
    assert_eq!(
        library.lookup("greet").unwrap().description(),
        "Greets someone"
    );
}

#[test]
fn all_errors_are_reported_at_once_with_their_location() {
    let errors = read(
        r#"nmae = "desk"

[tools.search]
description = 5
signature = "(query: Txt) --> IO Text"
comand = ["python3", "search.py"]

[tools.shell]
description = "Runs a script"
signature = "() --> IO Text"
command = "python3 search.py"
environment = ["A=B"]

[tools.both]
description = ""
command = ["a", 1]
builtin = "hello/sayHello"

[tools.ask]
description = "Asks a server"
signature = "(query: Text) --> IO Text"
directory = "/tmp"
http = { method = "get", url = "https://{query}.example.org/", allowed_hosts = [], header = {}, headers = { "a b" = "x" } }

[tools.fetch]
description = "Fetches a page"
signature = "(query: Text) --> IO Text"
http = { method = "GET", url = "https://example.org/{qery}", allowed_hosts = ["example.org"], headers = { Authorization = "Bearer abc", Host = "x" } }

[tools.other]
description = "Another server"
signature = "(query: Text) --> IO Text"
http = { url = "https://example.org/", allowed_hosts = ["example.com"] }

[tools.greet]
builtin = "hello/sayHelo"

[tools."bad name"]
description = "Has a bad name"
signature = "() --> IO Text"
command = []
"#,
    )
    .unwrap_err();
    insta::assert_snapshot!(errors);
}

#[test]
fn invalid_toml_is_reported_with_every_location() {
    insta::assert_snapshot!(read("name = \n[tools.a\nb = 'x'\nname = \"\"").unwrap_err());
}

#[test]
fn a_library_without_a_name_or_tools_is_refused() {
    insta::assert_snapshot!(read("").unwrap_err());
    assert!(
        read("name = \"a\"\n[tools]")
            .unwrap_err()
            .contains("`tools` is empty")
    );
    assert!(
        read("name = \"a\"\ntools = 1")
            .unwrap_err()
            .contains("must be a table, not a number")
    );
}

#[test]
fn the_name_of_a_library_is_on_one_line() {
    let library = |name: &str| {
        format!(
            "name = \"{name}\"\n[tools.note]\ndescription = \"Writes a note\"\n\
             signature = \"() --> IO Text\"\ncommand = [\"true\"]\n"
        )
    };
    assert!(read(&library("My tools")).is_ok());
    for name in ["x\\nhint: run this", "x\\u200By"] {
        let error = read(&library(name)).unwrap_err();
        assert_eq!(
            error,
            "1:8: `name` has line breaks or invisible characters; remove them"
        );
    }
}

#[test]
fn description_outside_10_to_500_characters_is_refused() {
    let read_described = |description: &str| {
        read(&format!(
            r#"
            name = "desk"
            [tools.greet]
            description = "{description}"
            signature = "(name: Text) --> IO Text"
            command = ["true"]
            "#
        ))
    };
    for length in [10, 500] {
        assert!(read_described(&"x".repeat(length)).is_ok(), "{length}");
    }
    for length in [9, 501] {
        let error = read_described(&"x".repeat(length)).unwrap_err();
        assert!(error.contains("tools.greet.description"), "{error}");
        assert!(
            error.contains(&format!("has {length} characters; it must have 10 to 500")),
            "{error}"
        );
    }
    let builtin = read(
        r#"
        name = "desk"
        tools.greet = { builtin = "hello/sayHello", description = "Greets" }
        "#,
    );
    assert!(builtin.unwrap_err().contains("has 6 characters"));
}

#[test]
fn reserved_name_is_refused_once_with_its_location() {
    let error = read(
        r#"
        name = "desk"
        tools.finish = { description = "Finishes the work", signature = "() --> IO Text", command = ["true"] }
    "#,
    )
    .unwrap_err();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("tools.finish"), "{error}");
    assert!(error.contains("`finish` is reserved"), "{error}");
}
