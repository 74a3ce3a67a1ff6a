//! How names are resolved in a run, and which tools the model is shown.

use windlass_spec::Timestamp;

use super::*;

const FILE: &str = r#"
[host:Agent {instruction: "Lead.", model: "OpenAI/gpt-4o-mini"} |
  [search:Tool {description: "Searches for something", risk: reversible} | (query::Text)==>(::Text)],
  [send:Tool {description: "Sends a message to someone"} | (to::Text)==>(::Text)],
  [helper:Agent {instruction: "Help.", model: "OpenAI/gpt-4o-mini"}]]
"#;

fn toolbox(available: Option<Vec<String>>, settings: &Settings) -> Toolbox {
    let file = windlass_spec::read(FILE).file.unwrap();
    let agents = file.agents();
    let host = agents.iter().find(|agent| agent.name().as_str() == "host");
    let task = Task {
        available_tools: available,
        ..Task::default()
    };
    Toolbox::new(host.unwrap(), agents, &task, settings)
}

fn kind(toolbox: &Toolbox, name: &str) -> Option<CallKind> {
    toolbox.resolve(name).map(|(kind, _)| kind)
}

fn shown(toolbox: &Toolbox) -> Vec<String> {
    let shown = toolbox.shown();
    shown.iter().map(|tool| tool.name().to_string()).collect()
}

fn offer(tools: &[&str], left_out: &[&str]) -> Event {
    let name = |name: &&str| ToolName::new(*name).unwrap();
    let left_out = left_out.iter().map(|tool| LeftOut {
        tool: name(tool),
        because: LeftOutReason::Budget,
    });
    Event::Offered {
        intent: None,
        tools: tools.iter().map(name).collect(),
        left_out: left_out.collect(),
        set: BTreeMap::new(),
        gap: None,
        disabled: Vec::new(),
        advice: None,
        environment: None,
        at: Timestamp::from_microseconds(0),
    }
}

#[test]
fn settings_select_the_reserved_tools() {
    let with = toolbox(None, &Settings::default());
    assert_eq!(kind(&with, "ask_human"), Some(CallKind::Question));
    assert_eq!(kind(&with, "create_execution_plan"), None);
    let without = Settings {
        ask_people: false,
        plans: true,
        ..Settings::default()
    };
    let without = toolbox(None, &without);
    assert_eq!(kind(&without, "ask_human"), None);
    assert!(matches!(
        kind(&without, "create_execution_plan"),
        Some(CallKind::Plan(_))
    ));
}

#[test]
fn tools_can_be_searched_only_if_some_are_left_out() {
    let mut toolbox = toolbox(None, &Settings::default());
    assert_eq!(kind(&toolbox, "find_tools"), None);
    toolbox.apply(&offer(&["search", "helper"], &["send"]));
    assert_eq!(kind(&toolbox, "find_tools"), Some(CallKind::ToolSearch));
    assert_eq!(
        shown(&toolbox),
        [
            "search",
            "helper",
            "find_tools",
            "ask_human",
            "request_authorization"
        ]
    );
    // A tool that is not shown can still be called.
    assert_eq!(kind(&toolbox, "send"), Some(CallKind::Tool));
}

#[test]
fn task_limits_the_callable_tools() {
    let toolbox = toolbox(Some(vec!["search".to_owned()]), &Settings::default());
    assert_eq!(shown(&toolbox), ["search"]);
    let is_known = |name| toolbox.resolve_call(name).is_some();
    assert!(is_known("search"));
    assert!(!is_known("send"));
    assert!(!is_known("ask_human"));
    assert!(is_known("finish"), "a run can always finish");
}
