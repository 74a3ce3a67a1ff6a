//! The precedence of layers, and the origins of values.

use serde_json::json;
use windlass_config::{Layer, LoadedConfiguration, load};
use windlass_spec::registry::Window;

use super::{project, render, source};

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn flags(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| (*flag).to_owned()).collect()
}

fn loaded(pairs: &[(&str, &str)], given: &[&str]) -> LoadedConfiguration {
    load(
        &[project("model = \"file\"")],
        variables(pairs),
        &flags(given),
    )
    .unwrap_or_else(|mistakes| panic!("{}", render(&mistakes)))
}

fn refused(pairs: &[(&str, &str)], given: &[&str]) -> String {
    render(&load(&[], variables(pairs), &flags(given)).expect_err("something is wrong"))
}

#[test]
fn later_layers_win() {
    let sources = [
        project("model = \"project\"\n[gate]\nundo_window_seconds = 3"),
        source(
            Layer::Admin,
            "/etc/windlass.toml",
            "model = \"admin\"\npolicies = \"admin.cedar\"",
        ),
        source(
            Layer::User,
            "user.toml",
            "model = \"user\"\n[gate]\nundo_window_seconds = 2\nconfidence_threshold = 0.9",
        ),
    ];
    let from = |pairs: &[(&str, &str)], given: &[&str]| {
        let loaded = load(&sources, variables(pairs), &flags(given)).unwrap();
        let model = loaded.configuration.model().unwrap().to_owned();
        let origin = loaded.configuration.origin(&["model"]).unwrap().to_string();
        (model, origin)
    };
    let pair = |model: &str, origin: &str| (model.to_owned(), origin.to_owned());
    assert_eq!(from(&[], &[]), pair("project", "windlass.toml:1"));
    let variable = [("WINDLASS_MODEL", "variable")];
    assert_eq!(from(&variable, &[]), pair("variable", "WINDLASS_MODEL"));
    let flag = pair("flag", "`--set model`");
    assert_eq!(from(&variable, &["model=flag"]), flag);
    let all = load(&sources, [], &[]).unwrap().configuration;
    assert_eq!(all.gate().undo_window.as_secs(), 3);
    assert_eq!(all.gate().confidence_threshold.get(), 0.9);
    let origin = all.origin(&["gate", "confidence_threshold"]).unwrap();
    assert_eq!(origin.to_string(), "user.toml:4");
    assert_eq!(origin.layer(), Layer::User);
    assert_eq!(origin.column(), Some(1));
    let built_in = all.origin(&["gate", "without_confidence"]).unwrap();
    assert_eq!((built_in.layer(), built_in.line()), (Layer::BuiltIn, None));
}

#[test]
fn tables_merge_and_lists_replace() {
    let sources = [
        source(
            Layer::User,
            "user.toml",
            "[principals.alice]\npermissions = [\"web:read\", \"files:read\"]\n[categories.web_tools.global_config]\nregion = \"eu\"\nlanguage = \"de\"",
        ),
        project(
            "[principals.alice]\npermissions = [\"files:read\"]\n[principals.bob]\npermissions = []\n[categories.web_tools.global_config]\nregion = \"us\"",
        ),
    ];
    let merged = load(&sources, [], &[]).unwrap().configuration;
    let alice: Vec<_> = merged.principal("alice").permissions.into_iter().collect();
    assert_eq!(alice, ["files:read".parse().unwrap()]);
    assert_eq!(merged.principals().len(), 2);
    let category = merged.categories().next().unwrap();
    assert_eq!(
        json!(category.global_config),
        json!({ "language": "de", "region": "us" })
    );
}

#[test]
fn the_lowest_ceiling_of_all_layers_applies() {
    let sources = [
        source(
            Layer::Admin,
            "admin.toml",
            "[ceilings]\ntimeout_seconds = 100\nrate_limits = { per_minute = 50, per_day = 10 }",
        ),
        project(
            "[ceilings]\ntimeout_seconds = 200\nrate_limits = { per_minute = 20, concurrent = 1 }",
        ),
    ];
    let loaded = load(&sources, [], &flags(&["ceilings.timeout_seconds=150"])).unwrap();
    let ceilings = loaded.configuration.ceilings();
    assert_eq!(ceilings.timeout.unwrap().get(), 100);
    let limits = [Window::PerMinute, Window::PerDay, Window::Concurrent]
        .map(|window| ceilings.rate_limits.get(window).unwrap().get());
    assert_eq!(limits, [20, 10, 1]);
    assert_eq!(
        render(&loaded.warnings),
        "windlass.toml:2:1: warning: ceilings.timeout_seconds: 200 cannot raise the ceiling of 100 at admin.toml:2\n\
         `--set ceilings.timeout_seconds`: warning: 150 cannot raise the ceiling of 100 at admin.toml:2"
    );
    let origin = loaded
        .configuration
        .origin(&["ceilings", "timeout_seconds"]);
    assert_eq!(origin.unwrap().to_string(), "admin.toml:2");
}

#[test]
fn some_keys_have_variables_with_short_names() {
    let pairs = [
        ("WINDLASS_ENVIRONMENT", "staging"),
        ("WINDLASS_BASE_URL", "http://localhost:1"),
        ("WINDLASS_POLICIES", "p.cedar"),
        ("WINDLASS_DATA", "/data"),
        ("WINDLASS_OPENAI_API_KEY", "secret"),
        ("PATH", "/bin"),
        ("WINDLASS_MODEL", ""),
    ];
    let configuration = loaded(&pairs, &[]).configuration;
    assert_eq!(configuration.environment().as_str(), "staging");
    assert_eq!(configuration.base_url(), Some("http://localhost:1"));
    assert_eq!(configuration.policies().unwrap().to_str(), Some("p.cedar"));
    assert_eq!(
        configuration.data_directory().unwrap().to_str(),
        Some("/data")
    );
    // An empty variable counts as unset.
    assert_eq!(configuration.model(), Some("file"));
}

#[test]
fn any_key_can_be_set_by_a_variable() {
    let pairs = [
        ("WINDLASS_CONFIG__gate__undo_window_seconds", "5"),
        ("WINDLASS_CONFIG__GATE__WITHOUT_CONFIDENCE", "ask"),
        ("WINDLASS_CONFIG__http__hosts", "example.org, *.example.com"),
        ("WINDLASS_CONFIG__http__allow_private", "true"),
        (
            "WINDLASS_CONFIG__categories__web_tools__tools__search__parameters",
            "{ limit = 3 }",
        ),
    ];
    let configuration = loaded(&pairs, &[]).configuration;
    assert_eq!(configuration.gate().undo_window.as_secs(), 5);
    let asks = windlass_config::WithoutConfidence::Ask;
    assert_eq!(configuration.gate().without_confidence, asks);
    assert_eq!(configuration.http().hosts, ["example.org", "*.example.com"]);
    assert!(configuration.http().allow_private);
    let tool = configuration.tool(&"search".parse().unwrap(), None);
    assert_eq!(json!(tool.parameters), json!({ "limit": 3 }));
    let message = refused(&[("WINDLASS_CONFIG__gate__undo_windo_seconds", "5")], &[]);
    assert!(message.starts_with("WINDLASS_CONFIG__gate__undo_windo_seconds: gate.undo_windo_seconds: there is no such key"), "{message}");
    assert!(
        message.contains("did you mean `undo_window_seconds`?"),
        "{message}"
    );
}

#[test]
fn any_key_can_be_set_by_a_flag() {
    let given = [
        "gate.undo_window_seconds = 5",
        "libraries=[\"a.toml\", \"builtin\"]",
        "principals.\"a.b\".permissions=web:read,web:search",
        "model=\"quoted\"",
        "search.max_results=7",
        "search.max_results=8",
    ];
    let configuration = loaded(&[], &given).configuration;
    assert_eq!(configuration.gate().undo_window.as_secs(), 5);
    assert_eq!(configuration.libraries().len(), 2);
    assert_eq!(configuration.principal("a.b").permissions.len(), 2);
    assert_eq!(configuration.model(), Some("quoted"));
    assert_eq!(configuration.search().max_results, 8);
}

#[test]
fn flags_are_checked_like_files() {
    let message = refused(&[], &["gate.undo_window_seconds=soon"]);
    assert!(message.contains("`--set gate.undo_window_seconds`: expected a whole number, 0 to 86400 seconds, found the string \"soon\""), "{message}");
    let message = refused(&[], &["undo"]);
    assert!(
        message.contains("this is not in the form KEY=VALUE"),
        "{message}"
    );
    let message = refused(&[], &["gate=5"]);
    assert!(
        message.contains("`--set gate`: this is a table, not a single value"),
        "{message}"
    );
    assert!(message.contains("gate.KEY=VALUE"), "{message}");
    let message = refused(&[], &["environment=prod"]);
    assert!(
        message.contains("there is no environment `prod`"),
        "{message}"
    );
    assert!(message.contains("did you mean `production`?"), "{message}");
}

#[test]
fn all_effective_values_are_listed_with_their_origins() {
    let loaded = loaded(
        &[("WINDLASS_ENVIRONMENT", "staging")],
        &["search.max_results=7"],
    );
    let all = loaded.configuration.entries();
    let find = |key: &str| {
        let found = all.iter().find(|entry| entry.key == key);
        let found = found.unwrap_or_else(|| panic!("{key} is not shown"));
        (found.value.clone(), found.layer, found.origin.as_str())
    };
    assert_eq!(
        find("environment"),
        (json!("staging"), Layer::Variable, "WINDLASS_ENVIRONMENT")
    );
    assert_eq!(
        find("model"),
        (json!("file"), Layer::Project, "windlass.toml:1")
    );
    assert_eq!(
        find("gate.undo_window_seconds"),
        (json!(10), Layer::BuiltIn, "built-in")
    );
    assert_eq!(
        find("libraries"),
        (json!(["builtin"]), Layer::BuiltIn, "built-in")
    );
    let flag = (json!(7), Layer::Flag, "`--set search.max_results`");
    assert_eq!(find("search.max_results"), flag);
}

#[test]
fn values_that_look_like_secrets_are_hidden() {
    let text = "[categories.crm_tools]\nschema = \"{api_key: Text, region: Text}\"\nglobal_config = { api_key = \"xyz\", region = \"eu\" }\n[categories.crm_tools.tools.find]\nparameters = { auth = { password = [\"xyz\"] } }\n[selection]\ntoken_budget = 5";
    let configuration = load(&[project(text)], [], &[]).unwrap().configuration;
    let all = configuration.entries();
    assert!(!serde_json::to_string(&all).unwrap().contains("xyz"));
    let secret = "categories.web_tools.tools.t.parameters.token=xyz";
    let by_flag = load(&[], [], &flags(&[secret])).unwrap().configuration;
    assert!(
        !serde_json::to_string(&by_flag.entries())
            .unwrap()
            .contains("xyz")
    );
    let find = |key: &str| {
        all.iter()
            .find(|entry| entry.key == key)
            .unwrap()
            .value
            .clone()
    };
    assert_eq!(
        find("categories.crm_tools.global_config.region"),
        json!("eu")
    );
    assert_eq!(
        find("categories.crm_tools.global_config.api_key"),
        json!("[hidden]")
    );
    assert_eq!(find("selection.token_budget"), json!(5));
}

#[test]
fn the_digest_depends_only_on_the_values() {
    let digest = |text: &str| super::configured(text).digest().to_owned();
    let one =
        digest("model = \"a\"\n[gate]\nundo_window_seconds = 5\nwithout_confidence = \"ask\"");
    let same = digest(
        "# a comment\ngate.without_confidence = \"ask\"\ngate.undo_window_seconds = 5\nmodel = 'a'",
    );
    assert_eq!(one, same);
    assert_eq!(one.len(), 16);
    assert_ne!(
        one,
        digest("model = \"b\"\n[gate]\nundo_window_seconds = 5")
    );
    // A key that is set to its built-in value counts as unset.
    assert_eq!(digest("[gate]\nundo_window_seconds = 10"), digest(""));
    assert_eq!(
        digest("[gate]\nconfidence_threshold = 1"),
        digest("[gate]\nconfidence_threshold = 1.0")
    );
    let by_flag = loaded(&[], &["search.max_results=7"]).configuration;
    assert_eq!(
        by_flag.digest(),
        digest("model = \"file\"\n[search]\nmax_results = 7")
    );
}
