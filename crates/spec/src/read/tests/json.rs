//! Agent files as JSON, and what other notations write.

use crate::{Agent, AgentFile, ToolSpecification, read, write};
use serde_json::json;

const HELLO: &str = r#"[hello_world_agent:Agent {
      instruction: "Use the `sayHello` tool.", model: "OpenAI/gpt-3.5-turbo"} |
      [sayHello:Tool {
        description: "Returns a friendly greeting message for the given name", risk: reversible,
        metadata: {owner: "desk", tags: ["a", "b"], version: 2}
      } | (name::Text)==>(::Text)]]"#;

fn file(text: &str) -> AgentFile {
    let reading = read(text);
    let found = reading.diagnostics;
    reading.file.unwrap_or_else(|| panic!("{found:?}"))
}

#[test]
fn file_and_agent_can_be_written_as_json_and_read_back() {
    let declared = file(HELLO);
    let as_json = serde_json::to_string_pretty(&declared).unwrap();
    assert_eq!(file(&as_json), declared);
    let agent = serde_json::to_string(&declared.agents()[0]).unwrap();
    assert_eq!(file(&agent), declared);
    let built = AgentFile::of_agents(declared.agents().to_vec());
    assert_eq!(built, Ok(declared));
}

#[test]
fn json_is_checked_by_the_rules_of_the_text_form() {
    let error = |text: &str| {
        let reading = read(text);
        assert!(reading.file.is_none(), "{text}");
        let found = reading.diagnostics;
        let errors = found.iter().filter(|found| found.is_error());
        errors
            .map(|found| found.message.clone())
            .collect::<Vec<_>>()
            .join("; ")
    };
    let agent = |more: serde_json::Value| {
        let mut agent = json!({"name": "a", "model": "m", "instruction": "Do."});
        agent
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        agent.to_string()
    };
    let tool = json!({"name": "t", "description": "short", "typeSignature": "() --> IO Text"});
    assert!(error(&agent(json!({"tools": [tool]}))).contains("has 5 characters"));
    assert!(error(&agent(json!({"agents": ["b"]}))).contains("`b` is not defined"));
    assert!(error(&agent(json!({"modle": "x"}))).contains("unknown field `modle`"));
    assert!(error("{\"name\": \"a\", }").contains("the agent file is not valid"));
    assert!(error("{\"name\": \"a\"}").contains("the agent file is not valid"));
    // A record of gram is no JSON.
    assert!(error("{name: \"a\"}").contains("neither an agent nor a tool"));
}

#[test]
fn metadata_is_kept_and_may_nest() {
    let declared = file(HELLO);
    let metadata = &declared.tools()[0].attributes().metadata;
    assert_eq!(
        json!(metadata),
        json!({"owner": "desk", "tags": ["a", "b"], "version": 2})
    );
    assert_eq!(file(&write(&declared).unwrap()), declared);
    let mut nested = json!(declared.tools()[0]);
    nested["metadata"] = json!({"links": {"docs": ["https://example.org"]}, "empty": []});
    let tool: ToolSpecification = serde_json::from_value(nested.clone()).unwrap();
    let agent = Agent::new(
        declared.agents()[0].name().clone(),
        declared.agents()[0].model().clone(),
        crate::NonEmptyText::new("Help.").unwrap(),
    );
    let built = AgentFile::of_agents(vec![agent.with_tool(tool).unwrap()]).unwrap();
    let again = file(&write(&built).unwrap());
    assert_eq!(
        json!(again.tools()[0].attributes().metadata),
        nested["metadata"]
    );
    let wrong = HELLO.replace("{owner: \"desk\", tags: [\"a\", \"b\"], version: 2}", "5");
    assert!(read(&wrong).file.is_none());
}

#[test]
fn name_that_is_the_identifier_is_accepted_silently() {
    let named = HELLO.replace(
        "{\n      instruction",
        "{name: \"hello_world_agent\", instruction",
    );
    let named = named.replace("{\n        description", "{name: \"sayHello\", description");
    let reading = read(&named);
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    assert_eq!(reading.file, Some(file(HELLO)));
    let other = named.replace("name: \"sayHello\"", "name: \"greet\"");
    let reading = read(&other);
    assert!(reading.file.is_none());
    let hint = reading.diagnostics[0].hint.as_deref().unwrap();
    assert!(
        hint.contains("write `greet` instead of `sayHello`"),
        "{hint}"
    );
}

#[test]
fn other_notation_of_a_tool_specification_gets_a_hint_that_helps() {
    let text = "toolSpecification: sayHello\n  name: \"sayHello\"\n  description: \"Returns a friendly greeting \
                message for the given name\"\n  typeSignature: \"(name: Text) --> IO Text\"\n";
    let reading = read(text);
    let hint = reading.diagnostics[0].hint.as_deref().unwrap();
    assert!(hint.contains("[name:Tool {"), "{hint}");
    for label in ["ToolSpecification", "toolSpecification"] {
        let text = format!(
            "[sayHello:{label} {{name: \"sayHello\", description: \"Returns a friendly greeting message for the \
             given name\", typeSignature: \"(name: Text) --> IO Text\"}}]"
        );
        let reading = read(&text);
        assert!(reading.file.is_none());
        let hint = reading.diagnostics[0].hint.as_deref().unwrap();
        assert!(hint.contains("the label `Tool`"), "{hint}");
        // The hint helps: with that label, the text is valid.
        assert!(read(&text.replace(label, "Tool")).file.is_some());
    }
}
