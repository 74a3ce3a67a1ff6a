//! The schema, the starter file and the guide agree with the table of keys.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use windlass_config::{key_names, schema, starter};
use windlass_spec::registry::Window;
use windlass_spec::{RiskLevel, TimeoutSeconds};

use super::{configured, load_project};

fn crate_file(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Set `UPDATE_SCHEMAS=1` to regenerate the schema.
#[test]
fn the_committed_schema_is_up_to_date() {
    let path = crate_file("schemas/windlass.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value == "1") {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, text, "run with UPDATE_SCHEMAS=1");
}

#[test]
fn the_schema_is_valid_and_describes_every_key() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    fn walk(schema: &Value, path: &str) {
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            let about = value["description"].as_str();
            assert!(about.is_some_and(|about| about.ends_with('.')), "{path}");
            walk(value, &path);
        }
        if schema["additionalProperties"].is_object() {
            walk(&schema["additionalProperties"], &format!("{path}.*"));
        }
    }
    walk(&schema, "");
}

/// A file as JSON, as an editor validates it against the schema.
fn toml_to_json(text: &str) -> Value {
    json!(toml::from_str::<toml::Table>(text).unwrap())
}

#[test]
fn the_schema_accepts_what_loading_accepts() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    for (text, good) in [
        (starter(), true),
        ("", true),
        ("environment = \"qa\"\nenvironments = [\"qa\"]", true),
        ("[principals.\"*\"]\npermissions = [\"web:read\"]", true),
        (
            "[intents]\nthreshold = 0.3\n[intents.fetch]\ntools = [\"get\"]",
            true,
        ),
        (
            "[http]\nhosts = [\"*.example.org\", \"example.org:80\", \"*\", \"*:81\", \"[::1]\", \"[::1]:81\", \"::1\"]",
            true,
        ),
        (
            "[categories.web_tools.tools.x.environment_overrides.staging]\ntimeout_seconds = 5",
            true,
        ),
        ("enviroment = \"qa\"", false),
        ("environment = \"QA\"", false),
        ("[gate]\nundo_window_seconds = -1", false),
        ("[gate]\nconfidence_threshold = 2", false),
        ("[gate]\nwithout_confidence = \"no\"", false),
        ("[risk]\nx = \"none\"", false),
        ("[principals.a]\npermissions = [\"A\"]", false),
        ("[principals.a]\nrate_limits = { per_minute = 0 }", false),
        ("[principals.a]\nrate_limits = { per_week = 1 }", false),
        ("[categories.Web]\nenabled = true", false),
        (
            "[categories.web_tools.tools.x]\ntimeout_seconds = 301",
            false,
        ),
        (
            "[categories.web_tools.tools.x.environment_overrides.staging]\nrisk = 5",
            false,
        ),
        ("[intents]\nthreshold = 3", false),
        ("[http]\nhosts = [\"https://example.org\"]", false),
        ("[search]\nendpoint = \"example.org\"", false),
        ("libraries = \"builtin\"", false),
    ] {
        assert_eq!(load_project(text).is_ok(), good, "{text}");
        assert_eq!(schema.is_valid(&toml_to_json(text)), good, "{text}");
    }
}

#[test]
fn the_table_of_keys_has_the_values_of_the_specification() {
    let schema = schema();
    let limits = &schema["properties"]["ceilings"]["properties"]["rate_limits"]["properties"];
    let windows: Vec<&str> = limits
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(windows, Window::ALL.map(Window::as_str));
    let levels = &schema["properties"]["risk"]["additionalProperties"]["enum"];
    assert_eq!(*levels, json!(RiskLevel::ALL.map(RiskLevel::as_str)));
    let timeout = &schema["properties"]["ceilings"]["properties"]["timeout_seconds"];
    assert_eq!(timeout["maximum"], json!(TimeoutSeconds::MAX));
}

#[test]
fn the_starter_loads_without_mistakes() {
    let configuration = configured(starter());
    assert_eq!(configuration.files().roots, [Path::new("/project/notes")]);
}

/// The commented-out keys of the starter must load as well.
#[test]
fn the_commented_keys_of_the_starter_load_without_mistakes() {
    let mut text = String::new();
    for line in starter().lines() {
        let code = line.strip_prefix("# ").filter(|rest| {
            let first = rest.split_whitespace().next().unwrap_or_default();
            rest.starts_with('[')
                || first.contains('_') && rest.contains(" = ")
                || rest.contains(" = ") && !rest.contains(". ")
        });
        text.push_str(code.unwrap_or(if line.starts_with('#') { "" } else { line }));
        text.push('\n');
    }
    let configuration = configured(&text);
    assert_eq!(configuration.model(), Some("reflex"));
    let find = configuration.tool(&"find_customer".parse().unwrap(), None);
    assert_eq!(find.timeout.get(), 20);
    assert_eq!(configuration.http().hosts, ["*.example.org"]);
}

#[test]
fn the_guide_mentions_every_key() {
    let guide = fs::read_to_string(crate_file("../../docs/configuration.md")).unwrap();
    for key in key_names() {
        // Rate limits are the same in all tables, and described once.
        let key = match key.split_once(".rate_limits.") {
            Some((_, window)) => window,
            None => &key,
        };
        // So are budgets.
        let key = match key.split_once(".budgets.") {
            Some((_, budget)) => &format!("budgets.{budget}"),
            None => key,
        };
        assert!(
            guide.contains(&format!("`{key}`")),
            "{key} is not in the guide"
        );
    }
}

/// Every TOML example of the guide loads.
#[test]
fn the_examples_of_the_guide_load_without_mistakes() {
    let guide = fs::read_to_string(crate_file("../../docs/configuration.md")).unwrap();
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        configured(block);
    }
}

/// The default of a key in the schema. Names in capitals stand for any name.
fn default_of(key: &str) -> Option<Value> {
    let mut found = &schema();
    for name in key.split('.') {
        let is_any = name.chars().all(|c| c.is_ascii_uppercase());
        found = match is_any {
            true => &found["additionalProperties"],
            false => &found["properties"][name],
        };
    }
    assert!(found.is_object(), "there is no key `{key}`");
    found.get("default").cloned()
}

/// A default as a document states it; `None` if it is described in words.
fn stated(cell: &str) -> Option<Value> {
    let cell = cell.trim().trim_matches('`');
    if let Some(number) = cell.strip_suffix(" MiB") {
        return Some(json!(number.parse::<u64>().ok()? * 1024 * 1024));
    }
    let cell = cell.strip_suffix(" s").unwrap_or(cell);
    match cell {
        "none" => Some(json!([])),
        "yes" => Some(json!(true)),
        "no" => Some(json!(false)),
        cell if cell.contains(' ') || cell.is_empty() => None,
        cell => Some(serde_json::from_str(cell).unwrap_or_else(|_| json!(cell))),
    }
}

/// Every default that a guide states is the one of the table of keys.
#[test]
fn documented_defaults_are_those_of_the_table_of_keys() {
    let mut compared = 0;
    for (document, prefix) in [
        ("configuration.md", ""),
        ("playbook.md", "learning."),
        ("gaps.md", "gaps."),
        ("policy.md", ""),
        ("built-in-tools.md", ""),
    ] {
        let guide = fs::read_to_string(crate_file(&format!("../../docs/{document}"))).unwrap();
        // The column of the defaults, in a table of keys.
        let mut column = None;
        for line in guide.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if !line.starts_with('|') {
                column = None;
                continue;
            }
            let is_of_keys = cells[1] == "key" && document != "policy.md";
            if cells[1].starts_with("---") {
                continue;
            }
            if is_of_keys || cells[1].starts_with("setting in") {
                column = cells.iter().position(|cell| *cell == "default");
                continue;
            }
            let Some(cell) = column.and_then(|column| cells.get(column)) else {
                continue;
            };
            let keys = cells[1].split(", ").filter(|cell| cell.starts_with('`'));
            let keys: Vec<String> = keys
                .map(|key| key.trim_matches('`').replace('[', "").replace("] ", "."))
                .collect();
            // Several keys in one row have their defaults in the same order.
            let all: Vec<&str> = match keys.len() {
                1 => vec![cell],
                _ => cell.split(", ").collect(),
            };
            assert_eq!(all.len(), keys.len(), "{document}: {line}");
            for (key, cell) in keys.iter().zip(all) {
                let key = format!("{prefix}{key}");
                let actual = default_of(&key);
                match (stated(cell), actual) {
                    (Some(stated), Some(actual)) => {
                        let is_same = stated == actual
                            || stated.as_f64().is_some() && stated.as_f64() == actual.as_f64();
                        assert!(is_same, "{document}: {key} is {actual}, not {stated}");
                        compared += 1;
                    }
                    // No default: the key is absent.
                    (Some(stated), None) => assert_eq!(stated, json!([]), "{document}: {key}"),
                    (None, Some(actual)) => {
                        let is_plain = actual.is_number() || actual.is_boolean();
                        assert!(!is_plain, "{document}: {key} is {actual}, not {cell}");
                    }
                    (None, None) => {}
                }
            }
        }
    }
    assert!(compared > 30, "only {compared} defaults are documented");
}
