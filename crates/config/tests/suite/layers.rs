//! Which layer wins, and where values come from.

use serde_json::json;
use windlass_config::{Layer, Loaded, load};
use windlass_spec::registry::Window;

use super::{project, shown, source};

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn flags(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| (*flag).to_owned()).collect()
}

fn loaded(pairs: &[(&str, &str)], given: &[&str]) -> Loaded {
    load(
        &[project("model = \"file\"")],
        variables(pairs),
        &flags(given),
    )
    .unwrap_or_else(|mistakes| panic!("{}", shown(&mistakes)))
}

fn refused(pairs: &[(&str, &str)], given: &[&str]) -> String {
    shown(&load(&[], variables(pairs), &flags(given)).expect_err("something is wrong"))
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
    let flag = pair("flag", "the flag `model`");
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
            "[principals.alice]\npermissions = [\"web:read\"]\n[categories.web_tools.global_config]\nregion = \"eu\"\nlanguage = \"de\"",
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
fn the_lowest_ceiling_of_all_layers_holds() {
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
        shown(&loaded.warnings),
        "windlass.toml:2:1: warning: ceilings.timeout_seconds: 200 does not raise the ceiling of 100 that admin.toml:2 sets\n\
         the flag `ceilings.timeout_seconds`: warning: ceilings.timeout_seconds: 150 does not raise the ceiling of 100 that admin.toml:2 sets"
    );
    let origin = loaded
        .configuration
        .origin(&["ceilings", "timeout_seconds"]);
    assert_eq!(origin.unwrap().to_string(), "admin.toml:2");
}

#[test]
fn some_variables_have_names_of_their_own() {
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
    // Set to nothing is not set.
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
    let told = refused(&[("WINDLASS_CONFIG__gate__undo_windo_seconds", "5")], &[]);
    assert!(told.starts_with("WINDLASS_CONFIG__gate__undo_windo_seconds: gate.undo_windo_seconds: there is no such key"), "{told}");
    assert!(
        told.contains("did you mean `undo_window_seconds`?"),
        "{told}"
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
    let told = refused(&[], &["gate.undo_window_seconds=soon"]);
    assert!(told.contains("gate.undo_window_seconds: expected a whole number, 0 to 86400 seconds, found the text \"soon\""), "{told}");
    let told = refused(&[], &["undo"]);
    assert!(told.contains("this is not a key and a value"), "{told}");
    let told = refused(&[], &["gate=5"]);
    assert!(
        told.contains("gate: this is a table, not a single value"),
        "{told}"
    );
    assert!(told.contains("gate.KEY=VALUE"), "{told}");
    let told = refused(&[], &["environment=prod"]);
    assert!(told.contains("there is no environment `prod`"), "{told}");
    assert!(told.contains("did you mean `production`?"), "{told}");
}

#[test]
fn everything_that_holds_is_shown_with_its_origin() {
    let loaded = loaded(
        &[("WINDLASS_ENVIRONMENT", "staging")],
        &["search.max_results=7"],
    );
    let all = loaded.configuration.shown();
    let find = |key: &str| {
        let found = all.iter().find(|shown| shown.key == key);
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
    let flag = (json!(7), Layer::Flag, "the flag `search.max_results`");
    assert_eq!(find("search.max_results"), flag);
}

#[test]
fn what_looks_like_a_secret_is_not_shown() {
    let text = "[categories.crm_tools]\nschema = \"{api_key: Text, region: Text}\"\nglobal_config = { api_key = \"xyz\", region = \"eu\" }\n[categories.crm_tools.tools.find]\nparameters = { auth = { password = [\"xyz\"] } }\n[selection]\ntoken_budget = 5";
    let configuration = load(&[project(text)], [], &[]).unwrap().configuration;
    let all = configuration.shown();
    assert!(!serde_json::to_string(&all).unwrap().contains("xyz"));
    let secret = "categories.web_tools.tools.t.parameters.token=xyz";
    let by_flag = load(&[], [], &flags(&[secret])).unwrap().configuration;
    assert!(
        !serde_json::to_string(&by_flag.shown())
            .unwrap()
            .contains("xyz")
    );
    let find = |key: &str| {
        all.iter()
            .find(|shown| shown.key == key)
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
fn the_digest_tells_values_apart_and_nothing_else() {
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
    // What is set to its built-in value is as if it was not set.
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
