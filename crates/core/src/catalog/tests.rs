//! The kinds of calls that names make.

use windlass_spec::Agent;
use windlass_spec::reserved::{FINISH, RESERVED_NAMES};

use super::*;

const FILE: &str = r#"
[host:Agent {instruction: "Lead.", model: "OpenAI/gpt-4o-mini"} |
  [search:Tool {description: "Searches for something", risk: reversible} | (query::Text)==>(::Text)],
  [helper:Agent {instruction: "Help.", model: "OpenAI/gpt-4o-mini"}]]
"#;

fn agents() -> Vec<Agent> {
    windlass_spec::read(FILE).file.unwrap().agents().to_vec()
}

fn kind(name: &str) -> Option<CallKind> {
    let agents = agents();
    let host = agents.iter().find(|agent| agent.name().as_str() == "host");
    let callable = callable(host.unwrap(), &agents);
    let mut found = callable
        .iter()
        .filter(|(_, tool)| tool.name().as_str() == name);
    let kind = found.next().map(|(kind, _)| *kind);
    assert!(found.next().is_none(), "`{name}` occurs twice");
    kind
}

#[test]
fn each_name_makes_one_kind_of_call() {
    assert_eq!(kind("search"), Some(CallKind::Tool));
    assert_eq!(kind("helper"), Some(CallKind::SubAgent));
    assert_eq!(kind("ask_human"), Some(CallKind::Question));
    assert_eq!(kind("request_authorization"), Some(CallKind::Authorization));
    assert_eq!(kind("find_tools"), Some(CallKind::ToolSearch));
    let create = CallKind::Plan(PlanOperation::Create);
    assert_eq!(kind("create_execution_plan"), Some(create));
    assert_eq!(kind("host"), None, "an agent does not call itself");
}

#[test]
fn reserved_tools_and_reserved_names_are_the_same_set() {
    let mut names: Vec<&str> = reserved()
        .iter()
        .map(|(_, tool)| tool.name().as_str())
        .chain([FINISH])
        .collect();
    names.sort_unstable();
    let mut expected = RESERVED_NAMES.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected);
}
