//! Single values: which are accepted, which are refused, and how they are read.

use std::path::Path;
use std::time::Duration;

use windlass_config::{Configuration, Library, WithoutConfidence};
use windlass_spec::RiskLevel;
use windlass_spec::registry::{Environment, Permission, Window};

use super::{configured, load_errors};

#[test]
fn without_a_file_the_built_in_values_apply() {
    let built_in = Configuration::default();
    assert_eq!(built_in.environment(), &Environment::DEVELOPMENT);
    assert_eq!(built_in.model(), None);
    assert_eq!(built_in.libraries(), [Library::BuiltIn]);
    assert_eq!(built_in.policies(), None);
    assert_eq!(built_in.gate().undo_window, Duration::from_secs(10));
    assert_eq!(built_in.gate().confidence_threshold.get(), 0.8);
    assert_eq!(built_in.gate().without_confidence, WithoutConfidence::Hold);
    assert_eq!(built_in.breaker().failures, 5);
    assert_eq!(built_in.breaker().cooldown, Duration::from_secs(30));
    assert_eq!(built_in.selection().token_budget, 4000);
    assert_eq!(built_in.files().max_bytes, 1_048_576);
    assert_eq!(built_in.http().timeout, Duration::from_secs(20));
    assert_eq!(built_in.automation_endpoint(), None);
    assert!(!built_in.http().allow_private);
    assert_eq!(built_in.search().max_results, 10);
    assert_eq!(built_in.intents().threshold.get(), 0.5);
    assert_eq!(built_in.digest(), configured("").digest());
}

const FULL: &str = r#"
environment = "qa"
environments = ["qa"]
model = "reflex"
base_url = "http://localhost:8080/v1"
libraries = ["builtin", "tools.toml", "/opt/tools.toml"]
policies = "policy.cedar"
data_directory = ".windlass"
permissions = ["crm:read"]

[gate]
undo_window_seconds = 0
confidence_threshold = 1
without_confidence = "ask"

[risk]
send_email = "irreversible"

[principals."*"]
permissions = ["web:read"]
rate_limits = { per_minute = 10, per_day = 500 }

[principals.alice]
permissions = ["crm:read", "files:write"]
rate_limits = { per_minute = 60 }

[agents.researcher]
permissions = ["web:read", "crm:read"]

[breaker]
failures = 2
cooldown_seconds = 60

[selection]
token_budget = 100
always = ["finish"]

[intents]
threshold = 0.25

[intents.refund]
examples = ["I want my money back"]
tools = ["pay_back"]
context = ["order"]
fallbacks = ["ask support"]

[files]
roots = [".", "/srv/files"]
max_bytes = 5

[http]
hosts = ["example.org", "*.example.org", "127.0.0.1:8080", "*"]
max_bytes = 6
timeout_seconds = 7
allow_private = true

[search]
endpoint = "https://search.example.org/search"
max_results = 3

[automation]
endpoint = "http://localhost:9000"
"#;

#[test]
fn every_key_has_an_accessor() {
    let full = configured(FULL);
    assert_eq!(full.environment().as_str(), "qa");
    assert_eq!(full.environments().iter().count(), 4);
    assert_eq!(full.model(), Some("reflex"));
    assert_eq!(full.base_url(), Some("http://localhost:8080/v1"));
    assert_eq!(full.gate().undo_window, Duration::ZERO);
    assert_eq!(full.gate().confidence_threshold.get(), 1.0);
    assert_eq!(full.gate().without_confidence, WithoutConfidence::Ask);
    assert_eq!(
        full.risk().get("send_email"),
        Some(&RiskLevel::Irreversible)
    );
    assert_eq!(full.principals().len(), 2);
    assert_eq!(full.agents().len(), 1);
    assert_eq!(full.breaker().failures, 2);
    assert_eq!(full.breaker().cooldown, Duration::from_secs(60));
    assert_eq!(full.selection().token_budget, 100);
    assert_eq!(full.selection().always, ["finish".parse().unwrap()]);
    assert_eq!(full.intents().threshold.get(), 0.25);
    let refund = full.intents().intents.get("refund").unwrap();
    assert_eq!(
        refund.examples.as_deref(),
        Some(&["I want my money back".to_owned()][..])
    );
    assert_eq!(refund.tools.as_ref().unwrap().len(), 1);
    assert_eq!(refund.context.as_deref(), Some(&["order".to_owned()][..]));
    assert_eq!(
        refund.fallbacks.as_deref(),
        Some(&["ask support".to_owned()][..])
    );
    assert_eq!(full.files().max_bytes, 5);
    assert_eq!(full.http().hosts.len(), 4);
    assert_eq!(full.http().max_bytes, 6);
    assert_eq!(full.http().timeout, Duration::from_secs(7));
    assert!(full.http().allow_private);
    assert_eq!(
        full.search().endpoint.as_deref(),
        Some("https://search.example.org/search")
    );
    assert_eq!(full.search().max_results, 3);
    assert_eq!(full.automation_endpoint(), Some("http://localhost:9000"));
}

#[test]
fn paths_start_from_the_directory_of_the_file() {
    let full = configured(FULL);
    let file = |path: &str| Library::File(path.into());
    let libraries = [
        Library::BuiltIn,
        file("/project/tools.toml"),
        file("/opt/tools.toml"),
    ];
    assert_eq!(full.libraries(), libraries);
    assert_eq!(full.policies(), Some(Path::new("/project/policy.cedar")));
    assert_eq!(full.data_directory(), Some(Path::new("/project/.windlass")));
    assert_eq!(
        full.files().roots,
        [Path::new("/project/."), Path::new("/srv/files")]
    );
}

fn permission(name: &str) -> Permission {
    name.parse().unwrap()
}

#[test]
fn permissions_that_are_not_granted_are_denied() {
    let built_in = Configuration::default();
    assert!(built_in.principal("alice").permissions.is_empty());
    let full = configured(FULL);
    let bob = full.principal("bob").permissions;
    assert_eq!(bob, [permission("web:read")].into());
}

#[test]
fn permissions_of_every_principal_add_to_those_of_one() {
    let alice = configured(FULL).principal("alice");
    let held = ["crm:read", "files:write", "web:read"].map(permission);
    assert_eq!(alice.permissions, held.into());
    assert_eq!(alice.rate_limits.get(Window::PerMinute).unwrap().get(), 60);
    assert_eq!(alice.rate_limits.get(Window::PerDay).unwrap().get(), 500);
}

#[test]
fn an_agent_restricts_the_permissions_of_its_principal() {
    let full = configured(FULL);
    let researcher = "researcher".parse().unwrap();
    let counts = full.permissions("alice", &researcher);
    assert_eq!(counts, ["crm:read", "web:read"].map(permission).into());
    // It never adds permissions: bob does not have crm:read.
    let counts = full.permissions("bob", &researcher);
    assert_eq!(counts, [permission("web:read")].into());
    let other = "writer".parse().unwrap();
    assert_eq!(
        full.permissions("alice", &other),
        full.principal("alice").permissions
    );
    let none =
        configured("[principals.a]\npermissions = [\"web:read\"]\n[agents.x]\npermissions = []");
    assert!(none.permissions("a", &"x".parse().unwrap()).is_empty());
}

#[test]
fn undo_window_is_0_to_86400_seconds() {
    for bad in ["-1", "86401"] {
        let message = load_errors(&format!("[gate]\nundo_window_seconds = {bad}"));
        let line = "windlass.toml:2:1: gate.undo_window_seconds";
        assert_eq!(message, format!("{line}: {bad} is not 0 to 86400 seconds"));
    }
}

#[test]
fn confidence_threshold_is_0_to_1() {
    for bad in ["1.5", "-0.1", "2"] {
        let message = load_errors(&format!("[gate]\nconfidence_threshold = {bad}"));
        assert!(
            message.ends_with(&format!("{bad} is not a number from 0 to 1")),
            "{message}"
        );
    }
    assert!(load_errors("[gate]\nconfidence_threshold = nan").contains("NaN"));
}

#[test]
fn risk_levels_are_a_closed_set() {
    let message = load_errors("[risk]\nsend_email = \"ireversible\"");
    assert!(
        message.contains("`ireversible` is not one of `reversible`"),
        "{message}"
    );
    assert!(
        message.contains("help: did you mean `irreversible`?"),
        "{message}"
    );
}

#[test]
fn without_confidence_is_hold_or_ask() {
    let message = load_errors("[gate]\nwithout_confidence = \"allow\"");
    assert!(
        message.contains("`allow` is not one of `hold`, `ask`"),
        "{message}"
    );
}

#[test]
fn rate_limits_are_positive_integers() {
    for bad in ["0", "-5", "4294967296"] {
        let message = load_errors(&format!(
            "[principals.a]\nrate_limits = {{ per_minute = {bad} }}"
        ));
        let line = "windlass.toml:2:17: principals.a.rate_limits.per_minute";
        assert_eq!(message, format!("{line}: {bad} is not a positive integer"));
    }
    let message = load_errors("[principals.a]\nrate_limits = { per_minute = 1.5 }");
    assert!(
        message.contains("expected a positive integer, found the number 1.5"),
        "{message}"
    );
}

#[test]
fn windows_of_rate_limits_are_a_closed_set() {
    let message = load_errors("[ceilings.rate_limits]\nper_week = 1");
    assert!(
        message.contains("ceilings.rate_limits.per_week: there is no such key"),
        "{message}"
    );
    for window in Window::ALL {
        configured(&format!("[ceilings.rate_limits]\n{window} = 1"));
    }
}

#[test]
fn timeout_is_1_to_300_seconds() {
    for bad in [0, 301] {
        let message = load_errors(&format!(
            "[categories.web_tools.tools.x]\ntimeout_seconds = {bad}"
        ));
        let key = "categories.web_tools.tools.x.timeout_seconds";
        assert_eq!(
            message,
            format!("windlass.toml:2:1: {key}: {bad} is not 1 to 300 seconds")
        );
    }
}

#[test]
fn names_of_environments_are_checked() {
    let message = load_errors("environments = [\"QA\"]\nenvironment = \"qa\"");
    assert!(
        message.starts_with("windlass.toml:1:17: environments[0]: `QA` is not the name"),
        "{message}"
    );
    // A name that may be declared is not reported as unknown.
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn strings_without_a_visible_character_are_refused() {
    for blank in ["", " ", "\u{feff}", "\u{200b} "] {
        let message = load_errors(&format!("[files]\nroots = [\"{blank}\"]"));
        assert!(
            message.contains("an empty string is not a path"),
            "{message}"
        );
    }
}

#[test]
fn urls_are_http_and_contain_no_password() {
    for (bad, why) in [
        ("ftp://example.org", "starts with http:// or https://"),
        ("example.org", "starts with http:// or https://"),
        ("https://", "has no host"),
        (
            "https://a:b@example.org",
            "must not contain a user or password",
        ),
        ("https://exa mple.org", "must not contain spaces"),
    ] {
        let message = load_errors(&format!("[search]\nendpoint = \"{bad}\""));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn hosts_are_exact_or_start_with_a_wildcard() {
    for good in [
        "example.org",
        "*.example.org:8443",
        "*",
        "*:8080",
        "::1",
        "[::1]:81",
        "10.0.0.1",
    ] {
        configured(&format!("[http]\nhosts = [\"{good}\"]"));
    }
    for (bad, why) in [
        ("https://example.org", "is a URL; write only the host"),
        ("example.*", "`*` that is not at the start"),
        ("*example.org", "`*` that is not at the start"),
        ("example.org:0", "port"),
        ("a/b", "is not a host"),
        ("user@example.org", "is not a host"),
        ("*.", "is not a host"),
        (".a", "is not a host"),
        ("[::1", "is not a host"),
        ("", "is not a host"),
    ] {
        let message = load_errors(&format!("[http]\nhosts = [\"{bad}\"]"));
        assert!(
            message.contains("http.hosts[0]") && message.contains(why),
            "{bad}: {message}"
        );
    }
}
