//! The rules of agent files, one test each, and snapshots of the diagnostics for invalid files.

mod json;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_gram::{Diagnostic, LineIndex};

use super::read;
use crate::{Agent, AgentFile, ToolSpecification, Type, write, write_agent};

const HELLO: &str = r#"
[hello_world_agent:Agent {
  description: "A friendly agent that uses the sayHello tool to greet users",
  instruction: "Greet people.",
  model: "OpenAI/gpt-3.5-turbo"
} | [sayHello:Tool {description: "Returns a friendly greeting message for the given name"} |
    (name::Text)==>(::Text)]]
"#;

fn file(text: &str) -> AgentFile {
    let reading = read(text);
    reading
        .file
        .unwrap_or_else(|| panic!("{text}\n{}", shown(text, &reading.diagnostics)))
}

fn agent_with(element: &str) -> String {
    format!("[a:Agent {{instruction: \"Do it.\", model: \"m\"}} | {element}]")
}

fn tool_with(properties: &str, signature: &str) -> String {
    format!("[t:Tool {{description: \"Does what it should\"{properties}}}{signature}]")
}

fn signature_of(text: &str) -> String {
    file(&tool_with("", &format!(" | {text}"))).tools()[0]
        .signature()
        .to_string()
}

fn codes(text: &str) -> Vec<&'static str> {
    read(text)
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code)
        .collect()
}

fn shown(text: &str, diagnostics: &[Diagnostic]) -> String {
    let lines = LineIndex::new(text);
    let mut out = String::new();
    for diagnostic in diagnostics {
        let at = lines.position(diagnostic.span.start);
        let found = diagnostic.span.text(text);
        let severity = diagnostic.severity;
        writeln!(
            out,
            "  {}:{} {severity} [{}] {}",
            at.line, at.column, diagnostic.code, diagnostic.message
        )
        .unwrap();
        writeln!(out, "      at: {found}").unwrap();
        if let Some(hint) = &diagnostic.hint {
            writeln!(out, "      hint: {hint}").unwrap();
        }
    }
    out
}

#[test]
fn an_agent_has_a_name_description_model_instruction_and_tools() {
    let file = file(HELLO);
    let agent = &file.agents()[0];
    assert_eq!(agent.name().as_str(), "hello_world_agent");
    assert_eq!(
        agent.description(),
        Some("A friendly agent that uses the sayHello tool to greet users")
    );
    assert_eq!(agent.model().to_string(), "OpenAI/gpt-3.5-turbo");
    assert_eq!(agent.model().id(), "gpt-3.5-turbo");
    assert_eq!(agent.instruction(), "Greet people.");
    assert_eq!(agent.tools().len(), 1);
}

#[test]
fn the_schema_of_a_tool_is_generated_from_its_signature() {
    let file = file(HELLO);
    let tool = file.tool("sayHello").unwrap();
    assert_eq!(
        tool.description(),
        "Returns a friendly greeting message for the given name"
    );
    assert_eq!(
        *tool.schema(),
        json!({"type": "object", "properties": {"name": {"type": "string"}},
               "required": ["name"], "additionalProperties": false})
    );
    assert_eq!(tool.returns_schema(), json!({"type": "string"}));
}

#[test]
fn both_forms_of_a_signature_give_the_same_schema() {
    for (path, text) in [
        ("(name::Text)==>(::Text)", "(name: Text) --> IO Text"),
        ("()==>(::Int)", "() --> IO Int"),
        (
            "(personName::String {default:\"world\"})==>(age::Int)==>(::String)",
            "(personName: Text = \"world\", age: Int) --> IO Text",
        ),
        (
            "(a::Integer {optional: true})==>(b::Number {default: 0.5})==>(c::Boolean {default: true})==>(::Double)",
            "(a: Maybe Int, b: Double = 0.5, c: Bool = true) --> Double",
        ),
        (
            "(tags::Array {elementType: \"Text\"})==>(::Array {elementType: \"Maybe Int\"})",
            "(tags: [Text]) --> IO [Maybe Int]",
        ),
        (
            "(o::Object {fields: {colour: \"Text\", weight: \"Maybe Int\", n: \"Int = 3\"}})==>(::Object)",
            "(o: {colour: Text, weight: Maybe Int, n: Int = 3}) --> IO Object",
        ),
        (
            "(address::`{street: Text, zip: {code: Int}}`)==>(::Text {optional: true})",
            "(address: {street: Text, zip: {code: Int}}) --> IO (Maybe Text)",
        ),
        (
            "(unit::Text {enum: [\"celsius\", fahrenheit], default: celsius, description: \"The scale\"})==>(::Array)",
            "(unit: \"celsius\" | \"fahrenheit\" = \"celsius\" \"The scale\") --> IO Array",
        ),
        (
            "(l::Array {default: [1, \"two\", true]})==>(::Bool)",
            "(l: Array = [1, \"two\", true]) --> Bool",
        ),
        (
            "(m::Object {default: {a: 1}})-->(::Bool)",
            "(m: Object = {\"a\": 1}) --> Bool",
        ),
    ] {
        let quoted = windlass_gram::quote(text).unwrap();
        let from_path = file(&tool_with("", &format!(" | {path}")));
        let from_text = file(&tool_with(&format!(", typeSignature: {quoted}"), ""));
        let both = file(&tool_with(
            &format!(", typeSignature: {quoted}"),
            &format!(" | {path}"),
        ));
        assert_eq!(from_path, from_text, "{path}");
        assert_eq!(from_path, both, "{path}");
        assert_eq!(from_path.tools()[0].schema(), from_text.tools()[0].schema());
    }
}

#[test]
fn both_sets_of_type_names_mean_the_same() {
    assert_eq!(
        signature_of("(a::Text)==>(b::Int)==>(c::Double)==>(d::Bool)==>(::Object)"),
        signature_of("(a::String)==>(b::Integer)==>(c::Number)==>(d::Boolean)==>(::Object)"),
    );
}

#[test]
fn a_parameter_name_may_be_used_by_several_tools() {
    let text = "[a:Tool {description: \"Does one thing\"} | (x::Text)==>(::Text)] \
                [b:Tool {description: \"Does another\"} | (x::Int)==>(::Text)]";
    assert_eq!(file(text).tools().len(), 2);
}

#[test]
fn an_agent_without_tools_or_description_is_valid() {
    let agent =
        file("[a:Agent {instruction: \"Talk.\", model: \"OpenAI/gpt-4o\"}]").agents()[0].clone();
    assert!(agent.tools().is_empty());
    assert_eq!(agent.description(), None);
}

#[test]
fn a_tool_is_defined_once_and_shared_by_several_agents() {
    let file = file(
        "[t:Tool {description: \"Shared by both\"} | (x::Text)==>(::Text)]
         [a:Agent {instruction: \"One.\", model: \"m\"} | t]
         [b:Agent {instruction: \"Two.\", model: \"m\"} | (t)]
         [c:Agent {instruction: \"Three.\", model: \"m\"} | [t]]",
    );
    assert_eq!(file.tools().len(), 1);
    for agent in file.agents() {
        assert!(std::sync::Arc::ptr_eq(&agent.tools()[0], &file.tools()[0]));
    }
}

#[test]
fn a_name_may_be_used_before_its_definition() {
    let file = file(
        "[a:Agent {instruction: \"One.\", model: \"m\"} | t]
         [t:Tool {description: \"Defined later\"} | (x::Text)==>(::Text)]",
    );
    assert_eq!(file.agents()[0].tools().len(), 1);
}

#[test]
fn sub_agents_are_agents_of_the_file_in_a_declared_order() {
    let file = file(
        "[boss:Agent {instruction: \"Lead.\", model: \"m\"} |
           [first:Agent {instruction: \"Begin.\", model: \"m\"}],
           [second:Agent {instruction: \"End.\", model: \"m\"}],
           (first)-[:THEN]->(second)]",
    );
    let boss = file.agent("boss").unwrap();
    let names: Vec<&str> = boss.agents().iter().map(AsRef::as_ref).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(
        (boss.flow()[0].from.as_str(), boss.flow()[0].to.as_str()),
        ("first", "second")
    );
    assert_eq!(
        file.roots()
            .map(|agent| agent.name().as_str())
            .collect::<Vec<_>>(),
        ["boss"]
    );
}

#[test]
fn the_order_of_work_may_be_written_before_its_parts() {
    let file = file(
        "[boss:Agent {instruction: \"Lead.\", model: \"m\"} |
           (first)-[:THEN]->(second), second,
           [first:Agent {instruction: \"Begin.\", model: \"m\"}]]
         [second:Agent {instruction: \"End.\", model: \"m\"}]",
    );
    assert_eq!(file.agent("boss").unwrap().agents().len(), 2);
    assert_eq!(file.agent("boss").unwrap().flow().len(), 1);
}

#[test]
fn definitions_are_found_in_any_bracket() {
    let text = "[library:Shelf | [t:Tool {description: \"Does what it should\"} | ()==>(::Text)]]
                [a:Agent {instruction: \"Do.\", model: \"m\"} | t]";
    assert_eq!(codes(text), ["ignored-pattern"]);
    assert_eq!(
        codes("[ | [a:Agent {}]]"),
        ["missing-property", "missing-property"]
    );
}

#[test]
fn a_reference_outside_of_an_agent_gets_a_warning() {
    let text = "[a:Agent {instruction: \"Do.\", model: \"m\"}] (a)-[:THEN]->(zzz) (yyy) [xxx]";
    assert_eq!(codes(text), ["ignored-pattern"; 3]);
}

#[test]
fn errors_are_kept_after_the_limit_of_warnings() {
    let odd: Vec<String> = (0..150)
        .map(|index| format!("odd{index}{index}: 1"))
        .collect();
    let text = format!(
        "[a:Agent {{instruction: \"Do.\", model: \"m\", {}}} | nosuch]",
        odd.join(", ")
    );
    let reading = read(&text);
    assert!(reading.file.is_none());
    assert!(reading.diagnostics.iter().any(Diagnostic::is_error));
}

#[test]
fn integers_beyond_64_bits_are_not_valid_defaults() {
    assert_eq!(
        signature_of("(a::Int {default: 18446744073709551615})==>(::Text)"),
        "(a: Int = 18446744073709551615) --> IO Text"
    );
    assert_eq!(
        codes(&tool_with(
            "",
            " | (a::Int {default: 18446744073709551616})==>(::Text)"
        )),
        ["default-type"]
    );
    assert_eq!(
        codes(&tool_with(
            "",
            " | (a::Object {default: {x: 1, x: 2}})==>(::Text)"
        )),
        ["default-type"]
    );
}

#[test]
fn every_attribute_of_a_tool_is_read() {
    let text = tool_with(
        ", risk: REVERSIBLE_WITH_DELAY, category: \"mail\", timeout_seconds: 300, idempotent: true, \
         cacheable: false, open_world: false, sensitive: true, undo_window_seconds: 0, deferred: true, dry_run_argument: dry",
        " | (dry::Bool {default: false})==>(::Text)",
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&file(&text).tools()[0]).unwrap());
}

#[test]
fn a_model_without_provider_is_from_openai() {
    let model = |text: &str| {
        let text = format!("[a:Agent {{instruction: \"Do.\", model: \"{text}\"}}]");
        file(&text).agents()[0].model().to_string()
    };
    assert_eq!(model("gpt-4o"), "OpenAI/gpt-4o");
    assert_eq!(model("anthropic/claude"), "Anthropic/claude");
    assert_eq!(model("Gemini/flash"), "Google/flash");
    assert_eq!(model("openrouter/meta/llama"), "openrouter/meta/llama");
}

#[test]
fn a_written_file_reads_back_as_the_same_file() {
    let nested = "[x:Tool {description: \"Nested and odd\", typeSignature: \"(l: [Int] = [], o: {a: {b: Text}} = {}) --> Text\"}]";
    for text in [
        HELLO,
        &HELLO.replace("Greet people.", "Two\\nlines, a \\\"quote\\\" and a \\\\ backslash"),
        "[`odd name`:Agent {instruction: \"\\/\\/x\", model: \"m\"}]",
        nested.replace(" = {}", "").as_str(),
        "[s:Tool {description: \"Shared by both\", risk: irreversible} | (x::Text {enum: [a, \"b c\"]})==>(y::`{p: Int = 3 \"doc\"}` {optional: true})==>(::Text {optional: true})]
         [b:Agent {instruction: \"Two.\", model: \"m\"} | s, c, (c)-[:THEN]->(s)]
         [c:Agent {instruction: \"Three.\", model: \"m\", description: \"Shares it\"} | s]",
    ] {
        let first = file(text);
        let written = write(&first).unwrap();
        assert_eq!(file(&written), first, "{written}");
        assert_eq!(write(&file(&written)).unwrap(), written);
    }
    insta::assert_snapshot!(write_agent(&file(HELLO).agents()[0]).unwrap());
}

#[test]
fn an_agent_reads_back_from_json() {
    let agent = file(HELLO).agents()[0].clone();
    let json = serde_json::to_string(&agent).unwrap();
    assert_eq!(serde_json::from_str::<Agent>(&json).unwrap(), agent);
    insta::assert_snapshot!(serde_json::to_string_pretty(&agent).unwrap());
}

#[test]
fn json_with_an_invalid_part_is_rejected() {
    let valid =
        json!({"name": "t", "description": "Does it", "typeSignature": "(x: Text) --> IO Text"});
    assert!(serde_json::from_value::<ToolSpecification>(valid.clone()).is_ok());
    for (key, value, expected) in [
        ("name", json!(""), "empty"),
        ("description", json!("  "), "empty"),
        ("typeSignature", json!("(x: Txet) --> IO Text"), "Txet"),
        ("schema", json!({"type": "object"}), "schema of `t`"),
        ("timeout_seconds", json!(301), "300"),
        ("rsik", json!("irreversible"), "unknown field"),
        ("dry_run_argument", json!("x"), "Bool"),
    ] {
        let mut broken = valid.clone();
        broken[key] = value;
        let error = serde_json::from_value::<ToolSpecification>(broken)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{key}: {error}");
    }
    let twice = json!({"name": "a", "model": "m", "instruction": "Do.", "tools": [valid, valid]});
    assert!(
        serde_json::from_value::<Agent>(twice)
            .unwrap_err()
            .to_string()
            .contains("two tools named `t`")
    );
}

#[test]
fn tool_name_must_not_be_empty() {
    assert_eq!(
        codes("[``:Tool {description: \"Does something\"} | ()==>(::Text)]"),
        ["bad-name"]
    );
}

#[test]
fn reserved_names_are_rejected_for_tools_and_agents() {
    for name in crate::reserved::RESERVED_NAMES {
        let tool = format!("[{name}:Tool {{description: \"Does something\"}} | ()==>(::Text)]");
        assert_eq!(codes(&tool), ["reserved-name"], "{tool}");
        let agent = format!("[{name}:Agent {{instruction: \"Do.\", model: \"m\"}}]");
        assert_eq!(codes(&agent), ["reserved-name"], "{agent}");
        assert_eq!(codes(&agent_with(&agent)), ["reserved-name"], "{agent}");
        assert!(read(&agent).file.is_none());
    }
}

#[test]
fn stored_agent_with_a_reserved_name_still_reads() {
    let text = agent_with(&tool_with("", " | ()==>(::Text)"));
    let mut json = serde_json::to_value(&file(&text).agents()[0]).unwrap();
    json["tools"][0]["name"] = json!("finish");
    assert!(serde_json::from_value::<Agent>(json).is_ok());
}

#[test]
fn tool_description_must_not_be_empty() {
    let text = "[t:Tool {description: \" \"} | ()==>(::Text)]";
    assert_eq!(codes(text), ["empty-property"]);
}

#[test]
fn tool_description_has_10_to_500_characters() {
    let with = |length: usize| {
        format!(
            "[t:Tool {{description: \"{}\"}} | ()==>(::Text)]",
            "x".repeat(length)
        )
    };
    assert_eq!(codes(&with(9)), ["description-length"]);
    assert_eq!(codes(&with(10)), [""; 0]);
    assert_eq!(codes(&with(500)), [""; 0]);
    assert_eq!(codes(&with(501)), ["description-length"]);
}

#[test]
fn agent_name_must_not_be_empty() {
    assert_eq!(
        codes("[``:Agent {instruction: \"Do.\", model: \"m\"}]"),
        ["bad-name"]
    );
}

#[test]
fn agent_instruction_must_not_be_empty() {
    assert_eq!(
        codes("[a:Agent {instruction: \"\", model: \"m\"}]"),
        ["empty-property"]
    );
    assert_eq!(codes("[a:Agent {model: \"m\"}]"), ["missing-property"]);
}

#[test]
fn tool_names_are_unique_within_an_agent() {
    let text = format!(
        "{} {}",
        tool_with("", " | ()==>(::Text)"),
        agent_with("t, t")
    );
    assert_eq!(codes(&text), ["duplicate-element"]);
}

#[test]
fn a_reference_that_resolves_to_nothing_suggests_the_nearest_name() {
    let text = format!(
        "[searchDocs:Tool {{description: \"Searches it all\"}} | (q::Text)==>(::Text)] {}",
        agent_with("serchDocs")
    );
    let diagnostic = &read(&text).diagnostics[0];
    assert_eq!(diagnostic.code, "unresolved-reference");
    assert_eq!(
        diagnostic.hint.as_deref(),
        Some("did you mean `searchDocs`?")
    );
}

#[test]
fn a_cycle_of_references_is_an_error() {
    let text = "[a:Agent {instruction: \"A.\", model: \"m\"} | b]
                [b:Agent {instruction: \"B.\", model: \"m\"} | c]
                [c:Agent {instruction: \"C.\", model: \"m\"} | a]";
    let diagnostic = &read(text).diagnostics[0];
    assert_eq!(diagnostic.code, "reference-cycle");
    assert!(
        diagnostic.message.ends_with("`a` -> `b` -> `c` -> `a`"),
        "{}",
        diagnostic.message
    );
    assert_eq!(codes(&agent_with("a")), ["reference-cycle"]);
}

#[test]
fn invalid_files_get_diagnostics() {
    let tool = tool_with("", " | ()==>(::Text)");
    let invalid_texts = [
        String::new(),
        "(alice:Person)".to_owned(),
        "[a:Agnet {instruction: \"Do.\", model: \"m\"}]".to_owned(),
        "[:Agent {instruction: \"Do.\", model: \"m\"}]".to_owned(),
        "[a:Agent:Tool {instruction: \"Do.\", model: \"m\"}]".to_owned(),
        "[a:Agent]".to_owned(),
        "[a:Agent {instruction: 5, model: \"m\", modle: \"x\", colour: red}]".to_owned(),
        "[a:Agent {instruction: \"Do.\", instruction: \"Do not.\", model: \"Opnai/x\"}]".to_owned(),
        "[a:Agent {instruction: \"Do.\", model: \"OpenAI/\"}]".to_owned(),
        format!("{tool} {tool}"),
        format!("{tool} [t:Agent {{instruction: \"Do.\", model: \"m\"}}]"),
        agent_with(&format!("{tool}, t")),
        agent_with("(x:Note {text: \"hi\"})"),
        agent_with("nothing"),
        agent_with("(a)-[:THEN]->(b)"),
        format!("{tool} {}", agent_with("(t)-[:BEFORE]->(t)")),
        format!("{tool} {}", agent_with("(t)--(t)")),
        tool_with("", ""),
        tool_with("", " | x"),
        tool_with("", " | (::Text)"),
        tool_with("", " | ()==>(::Text), ()==>(::Text)"),
        tool_with("", " | (a::Text)<==(::Text)"),
        tool_with("", " | (a::Text)==>(a::Int)==>(::Text)"),
        tool_with("", " | (::Text)==>(::Text)"),
        tool_with("", " | (a)==>()"),
        tool_with("", " | (a::Text::Int)==>(::Text)"),
        tool_with("", " | (a::Strng)==>(::text)"),
        tool_with("", " | (a::Int {default: \"x\"})==>(::Text)"),
        tool_with("", " | (a::Int {default: null})==>(::Text)"),
        tool_with("", " | (a::Int {default: 12kg})==>(::Text)"),
        tool_with("", " | (a::Int {defualt: 1})==>(::Text)"),
        tool_with("", " | (a::Int {enum: [b, c]})==>(::Text)"),
        tool_with("", " | (a::Text {enum: [b, b]})==>(::Text)"),
        tool_with("", " | (a::Text {enum: [b], default: c})==>(::Text)"),
        tool_with(
            "",
            " | (a::Array {elementType: \"Txt\"})==>(::Text {default: 1})",
        ),
        tool_with(
            "",
            " | (a::Object {fields: {b: \"Txt\", c: \"Text\"}})==>(::Text)",
        ),
        tool_with(
            "",
            " | (a::Object {fields: {b: \"Txt\", c: \"[Foo]\", d: 5, e: Int, e: Int}})==>(::Text {description: \"x\"})",
        ),
        tool_with("", " | (a::Object {fields: [b]})==>(::Text)"),
        "[a:Agent {instruction: null, model: \"m\"}]".to_owned(),
        tool_with(
            ", typeSignature: \"(name: Txet, age: Maybe) -> IO Text\"",
            "",
        ),
        tool_with(
            ", typeSignature: \"(name: Text) --> IO Text\"",
            " | (nom::Text)==>(::Text)",
        ),
        tool_with(", typeSignature: 5", ""),
        tool_with(
            ", risk: reversable, timeout_seconds: 0, idempotent: \"yes\", undo_window_seconds: -1",
            " | ()==>(::Text)",
        ),
        tool_with(", timeout_second: 5", " | ()==>(::Text)"),
        tool_with(
            ", dry_run_argument: \"dryrun\"",
            " | (dry_run::Bool)==>(::Text)",
        ),
        "[t:Tool {description: \"Short\"} | (a)->(b)]".to_owned(),
    ];
    let mut report = String::new();
    for text in invalid_texts {
        let reading = read(&text);
        writeln!(report, "{text}").unwrap();
        report.push_str(&shown(&text, &reading.diagnostics));
        let has_errors = reading.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(reading.file.is_none(), has_errors, "{text}");
    }
    insta::assert_snapshot!(report);
}

#[test]
fn deep_and_large_files_are_read_without_stack_overflow_and_in_linear_time() {
    let deep: String = (0..50_000)
        .map(|index| format!("[a{index}:Agent {{instruction: \"Do.\", model: \"m\"}}|"))
        .collect::<String>()
        + "[z:Tool {description: \"The innermost\"} | ()==>(::Text)]"
        + &"]".repeat(50_000);
    let wide: String = (0..50_000)
        .map(|index| {
            format!(
                "[a{index}:Agent {{instruction: \"Do.\", model: \"m\"}} | a{}]",
                index + 1
            )
        })
        .collect();
    let ring = wide.clone() + "[a50000:Agent {instruction: \"Do.\", model: \"m\"} | a0]";
    let unresolved = agent_with(
        &(0..50_000)
            .map(|index| format!("n{index}"))
            .collect::<Vec<_>>()
            .join(","),
    );
    let start = Instant::now();
    assert_eq!(file(&deep).agents().len(), 50_000);
    assert_eq!(codes(&wide), ["unresolved-reference"]);
    assert_eq!(codes(&ring), ["reference-cycle"]);
    assert_eq!(codes(&unresolved).len(), 100);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn types_nested_too_deeply_are_an_error() {
    let deep = format!("{}Text{}", "[".repeat(40), "]".repeat(40));
    let text = tool_with(&format!(", typeSignature: \"(a: {deep}) --> IO Text\""), "");
    assert_eq!(codes(&text), ["type-depth"]);
    let text = tool_with("", &format!(" | (a::`{deep}`)==>(::{})", "Text"));
    assert_eq!(codes(&text), ["type-depth"]);
    assert_eq!(
        signature_of("(a::`[[Text]]`)==>(::Text)"),
        "(a: [[Text]]) --> IO Text"
    );
    assert_eq!(
        Type::parse("[[Text]]").unwrap().0,
        Type::list(Type::list(Type::Text))
    );
}
