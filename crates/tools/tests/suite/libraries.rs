//! Libraries: tools by name.

use windlass_spec::ToolName;
use windlass_tools::{BindingMode, ToolLibrary, bind, builtin_libraries, builtin_library, hello};

use super::{agent, library, specification, tool};

fn names(library: &ToolLibrary) -> Vec<&str> {
    library.iter().map(|tool| tool.name().as_str()).collect()
}

#[test]
fn tools_are_listed_in_the_order_they_were_registered() {
    let library = library(["c", "a", "b"].map(|name| tool(name, "() --> IO Text")));
    assert_eq!(names(&library), ["c", "a", "b"]);
    assert_eq!(library.list().len(), library.len());
    assert!(!library.is_empty() && ToolLibrary::new("empty").is_empty());
}

#[test]
fn registering_a_known_name_replaces_and_returns_the_tool() {
    let mut library = library(["a", "b"].map(|name| tool(name, "() --> IO Text")));
    let replaced = library.register(tool("a", "() --> IO Int")).unwrap();
    assert_eq!(replaced.returns_schema().unwrap()["type"], "string");
    assert_eq!(
        library.lookup("a").unwrap().returns_schema().unwrap()["type"],
        "integer"
    );
    assert_eq!(names(&library), ["a", "b"]);
    assert!(library.register(tool("c", "() --> IO Int")).is_none());
}

#[test]
fn a_tool_can_be_registered_under_another_name() {
    let mut library = ToolLibrary::new("local");
    let name = ToolName::new("files.read").unwrap();
    assert!(
        library
            .register(tool("read", "() --> IO Text").renamed(name.clone()))
            .is_none()
    );
    assert_eq!(library.lookup("files.read").unwrap().name(), &name);
    assert!(library.lookup("read").is_none());
}

#[test]
fn merging_keeps_both_orders_and_the_first_name() {
    let first = library(["b", "a"].map(|name| tool(name, "() --> IO Text")));
    let second = ToolLibrary::new("other").with(tool("A", "() --> IO Text"));
    let merged = first.merge(second).unwrap();
    assert_eq!(
        (merged.name(), names(&merged)),
        ("local", vec!["b", "a", "A"])
    );
    assert!(merged.lookup("A").is_some());
}

#[test]
fn merging_reports_every_name_that_both_have() {
    let tools = || ["a", "b", "c"].map(|name| tool(name, "() --> IO Text"));
    let [_, b, c] = tools();
    let conflict = library(tools())
        .merge(ToolLibrary::new("other").with(c).with(b))
        .unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "the libraries `local` and `other` both have `c`, `b`; \
         register one of each under another name"
    );
}

#[test]
fn two_libraries_can_have_the_same_tool_names() {
    let greeter = agent([specification("sayHello", "(name: Text) --> IO Text")]);
    for library in [hello::hello(), hello::hello_brief()] {
        for mode in [BindingMode::Exact, BindingMode::Compatible] {
            let bound = bind(&greeter, &library, mode).unwrap();
            assert_eq!(bound.library(), library.name());
            assert_eq!(
                bound.get("sayHello").unwrap().tool().name().as_str(),
                "sayHello"
            );
        }
    }
}

#[test]
fn the_built_in_libraries_are_found_by_name() {
    let listed: Vec<String> = builtin_libraries()
        .iter()
        .map(|library| library.name().to_owned())
        .collect();
    assert_eq!(listed, ["hello", "hello-brief"]);
    for name in &listed {
        assert_eq!(names(&builtin_library(name).unwrap()), ["sayHello"]);
    }
    assert!(builtin_library("goodbye").is_none());
}
