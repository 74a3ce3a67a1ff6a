//! No argument can exhaust the stack or take more than linear time.

use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_spec::RiskLevel;

use super::super::{KnownTool, ToolRisk, shell, sql};

/// Runs on half the stack that threads of an async runtime have.
fn on_small_stack<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap()
}

/// The CPU time of this thread. Wall-clock time would include other work on a busy machine.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn assert_cpu_time(limit: Duration, what: &str, run: impl FnOnce() + Send + 'static) {
    // A new thread has used no CPU time before.
    let took = on_small_stack(|| {
        run();
        cpu_time()
    });
    assert!(took < limit, "{what} took {took:?}");
}

#[test]
fn chained_and_nested_sql_neither_overflows_nor_hangs() {
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("SELECT {}{middle}{}", open.repeat(n), close.repeat(n))
    };
    for n in [20, 39, 200, 900, 1900, 100_000] {
        let texts = [
            format!("SELECT 1{}", " + 1".repeat(n)),
            format!("SELECT * FROM t WHERE a{}", " OR a".repeat(n)),
            format!("SELECT 1{}", " UNION SELECT 1".repeat(n)),
            format!("SELECT {}1", "NOT ".repeat(n)),
            format!("SELECT {}1", "- ".repeat(n)),
            format!("SELECT a{}", "[1]".repeat(n)),
            format!("SELECT a{}", "::int".repeat(n)),
            format!("SELECT a{}", ".b".repeat(n)),
            format!(
                "CREATE TABLE t (a {}int{})",
                "ARRAY<".repeat(n),
                ">".repeat(n)
            ),
            format!("CREATE TABLE t (a int{})", "[]".repeat(n)),
            format!(
                "SELECT {}1{}",
                "CASE WHEN ".repeat(n),
                " THEN 1 END".repeat(n)
            ),
            format!("SELECT 1 FROM {}t{}", "(".repeat(n), ")".repeat(n)),
            format!(
                "SELECT 1 FROM {}t{}",
                "(SELECT 1 FROM ".repeat(n),
                ")".repeat(n)
            ),
            format!("SELECT 1 FROM {}t{}", "(t JOIN ".repeat(n), ")".repeat(n)),
            format!(
                "{}SELECT 1{}",
                "WITH a AS (".repeat(n),
                ") SELECT 1".repeat(n)
            ),
            format!("{} SELECT 1", "EXPLAIN ".repeat(n)),
            format!("{} SELECT 1", "PREPARE a AS ".repeat(n)),
            deep("(", "1", ")", n),
            deep("f(", "1", ")", n),
            deep("f(x => ", "1", ")", n),
            deep("[", "1", "]", n),
            deep("{'a': ", "1", "}", n),
            deep("CAST(", "1", " AS int)", n),
            deep("(1, ", "1", ")", n),
            deep("EXISTS (SELECT ", "1", ")", n),
            deep("INTERVAL ", "'1'", " DAY", n),
            deep("a BETWEEN ", "1", " AND 2", n),
            deep("x -> ", "1", "", n),
            deep("'", "", "'", n),
            deep("/*", "", "*/", n),
            deep("$a$", "", "$a$", n),
        ];
        for text in texts {
            let shown: String = text.chars().take(60).collect();
            assert_cpu_time(
                Duration::from_secs(4),
                &format!("{n}: {shown}"),
                move || {
                    sql::assess(&text);
                    sql::assess_if_sql(&text);
                },
            );
        }
    }
}

#[test]
fn text_too_long_to_assess_is_irreversible() {
    let chain = format!("SELECT 1{}", " + 1".repeat(100_000));
    assert_eq!(sql::assess(&chain).level, RiskLevel::Irreversible);
    let long = format!("SELECT '{}'", "x".repeat(1_000_000));
    assert_eq!(sql::assess(&long).level, RiskLevel::Irreversible);
    let line = format!("echo {}", "x".repeat(1_000_000));
    assert_eq!(shell::assess(&line).level, RiskLevel::Irreversible);
    let nested = format!("echo {}ls{}", "$(".repeat(1000), ")".repeat(1000));
    assert_eq!(shell::assess(&nested).level, RiskLevel::Irreversible);
}

#[test]
fn long_ordinary_sql_is_assessed() {
    let columns = (0..300)
        .map(|n| format!("t.column_{n} AS c{n}"))
        .collect::<Vec<_>>();
    let query = format!(
        "SELECT {} FROM t WHERE t.a = 1 ORDER BY 1",
        columns.join(", ")
    );
    assert_eq!(sql::assess(&query).level, RiskLevel::Reversible);
    let rows = vec!["(1, 'a', 2.5)"; 5000].join(", ");
    let insert = format!("INSERT INTO t (a, b, c) VALUES {rows}");
    assert_eq!(sql::assess(&insert).level, RiskLevel::ReversibleWithDelay);
}

#[test]
fn hostile_command_lines_take_linear_time() {
    for n in [50, 5000, 15_000] {
        let lines = [
            format!("{}ls{}", "$(".repeat(n), ")".repeat(n)),
            "`".repeat(n),
            "\"$(".repeat(n),
            "sudo ".repeat(n),
            "env env -u ".repeat(n),
            "ls;".repeat(n),
            "find . -exec ".repeat(n),
            ">".repeat(n),
            "'".repeat(n),
            "\\".repeat(n),
            "bash -c '".repeat(n),
            "((".repeat(n),
        ];
        for line in lines {
            let shown: String = line.chars().take(30).collect();
            assert_cpu_time(
                Duration::from_secs(2),
                &format!("{n}: {shown}"),
                move || {
                    shell::assess(&line);
                },
            );
        }
    }
}

fn assessed(arguments: Value) -> RiskLevel {
    let Value::Object(arguments) = arguments else {
        panic!("no object")
    };
    let tool = ToolRisk::of(&KnownTool::named("get_rows"));
    tool.with_arguments(&arguments).level
}

#[test]
fn five_megabytes_of_arguments_are_assessed_quickly() {
    let rows: Vec<Value> = (0..60_000)
        .map(|n| json!({"id": n, "name": "somebody", "url": "https://example.com/?q=1", "to": "a@b.c"}))
        .collect();
    let keys: Map<String, Value> = (0..200_000)
        .map(|n| (format!("key_number_{n}"), json!("v")))
        .collect();
    let cases = [
        json!({"rows": rows}),
        json!({"content": "x".repeat(5_000_000)}),
        json!({"url": format!("https://example.com/{}", "x".repeat(5_000_000))}),
        json!({"sql": "x".repeat(5_000_000)}),
        json!({"command": "x ".repeat(2_500_000)}),
        json!({"query": "select ".repeat(700_000)}),
        json!({"to": "a@b.c,".repeat(800_000)}),
        json!({"numbers": vec![0; 2_000_000]}),
        Value::Object(keys),
        json!({"queries": vec!["SELECT a FROM t WHERE b = 1"; 20_000]}),
    ];
    for (index, arguments) in cases.into_iter().enumerate() {
        assert_cpu_time(
            Duration::from_secs(8),
            &format!("case {index}"),
            move || {
                assessed(arguments);
            },
        );
    }
}

#[test]
fn extreme_nesting_is_assessed_without_recursion() {
    // The value is built, assessed and dropped without recursion.
    let mut value = json!({"sql": "DROP TABLE t"});
    for depth in 0..200_000 {
        value = if depth % 2 == 0 {
            Value::Array(vec![value])
        } else {
            Value::Object(Map::from_iter([("a".to_owned(), value)]))
        };
    }
    let mut arguments = Map::new();
    arguments.insert("deep".to_owned(), value);
    let level = ToolRisk::of(&KnownTool::named("get_rows"))
        .with_arguments(&arguments)
        .level;
    assert_eq!(level, RiskLevel::Irreversible);
    let mut open: Vec<Value> = arguments.into_iter().map(|(_, value)| value).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

#[test]
fn deep_and_wide_schemas_are_read_within_bounds() {
    let mut schema = json!({"type": "string"});
    for _ in 0..100 {
        schema =
            json!({"type": "object", "properties": {"a": schema.clone(), "b": schema.get("x")}});
    }
    let mut items = json!({"type": "string"});
    for _ in 0..100 {
        items = json!({"type": "array", "items": items});
    }
    let schema = json!({"properties": {"s": schema, "i": items}});
    let tool = ToolRisk::of(&KnownTool {
        name: "get_rows",
        schema: Some(&schema),
        ..KnownTool::default()
    });
    assert_eq!(tool.base().level, RiskLevel::Reversible);
}
