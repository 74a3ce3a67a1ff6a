//! The rules between values.

use super::{configured, load_errors, load_project, load_warnings, render};

#[test]
fn the_environment_must_be_predefined_or_declared() {
    for good in ["development", "staging", "production"] {
        configured(&format!("environment = \"{good}\""));
    }
    configured("environment = \"qa\"\nenvironments = [\"qa\"]");
    assert_eq!(
        load_errors("environment = \"qa\""),
        "windlass.toml:1:1: environment: there is no environment `qa`\n  \
         help: known environments: `development`, `production`, `staging`. To add one: environments = [\"qa\"]"
    );
}

#[test]
fn environment_overrides_must_name_existing_environments() {
    let message = load_errors(
        "[categories.web_tools.tools.x.environment_overrides.prodution]\nenabled = false",
    );
    assert_eq!(
        message,
        "windlass.toml:1:53: categories.web_tools.tools.x.environment_overrides.prodution: there is no environment `prodution`\n  \
         help: did you mean `production`? Known environments: `development`, `production`, `staging`"
    );
    let message = load_errors("[categories.web_tools.environment_overrides.qa]\nenabled = false");
    assert!(
        message.contains("there is no environment `qa`"),
        "{message}"
    );
}

#[test]
fn permissions_must_be_built_in_or_declared() {
    for (text, key) in [
        (
            "[principals.a]\npermissions = [\"web:read\", \"crm:read\"]",
            "principals.a",
        ),
        (
            "[agents.a]\npermissions = [\"web:read\", \"crm:read\"]",
            "agents.a",
        ),
        (
            "[categories.web_tools]\npermissions = [\"web:read\", \"crm:read\"]",
            "categories.web_tools",
        ),
    ] {
        let message = load_errors(text);
        let expected = format!(
            "windlass.toml:2:28: {key}.permissions[1]: there is no permission `crm:read`\n  \
             help: did you mean `im:read`? If not, define the permission: permissions = [\"crm:read\"]"
        );
        assert_eq!(message, expected);
        configured(&format!("permissions = [\"crm:read\"]\n{text}"));
    }
    let message = load_errors("[categories.web_tools.tools.x]\npermissions = [\"web:raed\"]");
    assert!(
        message.contains("categories.web_tools.tools.x.permissions[0]: there is no"),
        "{message}"
    );
    let message = load_errors("[principals.a]\npermissions = [\"channel:history\"]");
    assert!(
        message.contains("help: did you mean `channels:history`?"),
        "{message}"
    );
}

#[test]
fn a_category_must_be_predefined_or_declared_with_a_schema() {
    for name in [
        "slack_tools",
        "openai_tools",
        "analysis_tools",
        "file_tools",
    ] {
        configured(&format!("[categories.{name}]\nenabled = false"));
    }
    let message = load_errors("[categories.slak_tools]\nenabled = false");
    assert!(
        message.starts_with(
            "windlass.toml:1:13: categories.slak_tools: there is no category `slak_tools`"
        ),
        "{message}"
    );
    assert!(
        message.contains("did you mean `slack_tools`? If not, define"),
        "{message}"
    );
    configured("[categories.crm_tools]\nschema = \"{}\"");
    configured(
        "[categories.crm_tools]\nschema = \"{region: Text}\"\nglobal_config = { region = \"eu\" }",
    );
}

#[test]
fn the_schema_of_a_predefined_category_cannot_be_changed() {
    let message = load_errors("[categories.slack_tools]\nschema = \"{a: Text}\"");
    assert!(
        message.contains("`slack_tools` is predefined, and its schema cannot be changed"),
        "{message}"
    );
}

#[test]
fn a_schema_must_be_a_record_type() {
    for bad in ["Text", "{region: Txt}", "region: Text", "{"] {
        let message = load_errors(&format!("[categories.crm_tools]\nschema = \"{bad}\""));
        assert!(
            message.starts_with("windlass.toml:2:1: categories.crm_tools.schema: "),
            "{message}"
        );
        assert!(!message.contains("there is no category"), "{message}");
    }
}

#[test]
fn global_config_must_fit_the_schema_of_its_category() {
    let message = load_errors(
        "[categories.slack_tools.global_config]\nchanel = \"general\"\nlimit = \"many\"",
    );
    assert_eq!(
        message,
        "windlass.toml:2:1: categories.slack_tools.global_config.chanel: there is no such key (did you mean `channel`?)\n\
         windlass.toml:3:1: categories.slack_tools.global_config.limit: expected Int, found \"many\""
    );
    let message = load_errors(
        "[categories.crm_tools]\nschema = \"{region: Text, page_size: Maybe Int}\"\n[categories.crm_tools.global_config]\npage_size = 5",
    );
    assert!(
        message.contains("categories.crm_tools.global_config.region: expected Text, found nothing"),
        "{message}"
    );
    // A required value is also reported if there is no global_config.
    let message = load_errors("[categories.crm_tools]\nschema = \"{region: Text}\"");
    assert!(
        message.contains("global_config.region: expected Text, found nothing"),
        "{message}"
    );
}

#[test]
fn a_tool_can_be_in_only_one_category() {
    let message =
        load_errors("[categories.web_tools.tools.find]\n[categories.file_tools.tools.find]");
    assert_eq!(
        message,
        "windlass.toml:2:30: categories.file_tools.tools.find: `find` is already in the category `web_tools`, at windlass.toml:1\n  \
         help: a tool can be in only one category; remove one of the two"
    );
}

#[test]
fn an_override_cannot_enable_a_tool_of_a_disabled_category() {
    let off_everywhere = "[categories.web_tools]\nenabled = false\n[categories.web_tools.tools.x.environment_overrides.production]\nenabled = true";
    assert_eq!(
        load_errors(off_everywhere),
        "windlass.toml:4:1: categories.web_tools.tools.x.environment_overrides.production.enabled: \
         the tool cannot be switched on in production: its category `web_tools` is switched off there, at windlass.toml:2\n  \
         help: switch the category on: [categories.web_tools.environment_overrides.production] enabled = true"
    );
    let off_there = "[categories.web_tools.environment_overrides.production]\nenabled = false\n[categories.web_tools.tools.x.environment_overrides.production]\nenabled = true";
    assert!(load_errors(off_there).contains("at windlass.toml:2"));
    let elsewhere = off_there.replacen("production", "staging", 1);
    assert!(load_project(&elsewhere).is_ok());
    let on_there = format!(
        "{off_everywhere}\n[categories.web_tools.environment_overrides.production]\nenabled = true"
    );
    assert!(load_project(&on_there).is_ok());
}

#[test]
fn enabling_a_tool_of_a_disabled_category_has_no_effect() {
    let message = load_warnings(
        "[categories.web_tools]\nenabled = false\n[categories.web_tools.tools.x]\nenabled = true",
    );
    assert_eq!(
        message,
        "windlass.toml:4:1: warning: categories.web_tools.tools.x.enabled: has no effect: `web_tools` is switched off at windlass.toml:2"
    );
}

#[test]
fn a_value_above_a_ceiling_is_lowered_with_a_warning() {
    let text = "[ceilings]\ntimeout_seconds = 20\nrate_limits = { per_minute = 5 }\n\
        [principals.a]\nrate_limits = { per_minute = 6, per_hour = 100 }\n\
        [categories.web_tools]\nrate_limits = { per_minute = 7 }\n\
        [categories.web_tools.tools.x]\ntimeout_seconds = 21\nrate_limits = { per_minute = 5 }\n\
        [categories.web_tools.tools.x.environment_overrides.staging]\ntimeout_seconds = 22";
    assert_eq!(
        load_warnings(text),
        "windlass.toml:5:17: warning: principals.a.rate_limits.per_minute: 6 is above the ceiling at windlass.toml:3; using 5\n\
         windlass.toml:7:17: warning: categories.web_tools.rate_limits.per_minute: 7 is above the ceiling at windlass.toml:3; using 5\n\
         windlass.toml:9:1: warning: categories.web_tools.tools.x.timeout_seconds: 21 is above the ceiling at windlass.toml:2; using 20\n\
         windlass.toml:12:1: warning: categories.web_tools.tools.x.environment_overrides.staging.timeout_seconds: 22 is above the ceiling at windlass.toml:2; using 20"
    );
}

#[test]
fn an_intent_that_is_not_predefined_needs_examples() {
    configured("[intents.summarize]\ntools = [\"sum_up\"]");
    configured("[intents.refund]\nexamples = [\"I want my money back\"]");
    let message = load_errors("[intents.refund]\ntools = [\"pay_back\"]");
    assert!(
        message.starts_with(
            "windlass.toml:1:10: intents.refund: an intent that is not predefined needs examples"
        ),
        "{message}"
    );
    let message = load_errors("[intents.sumarize]\ntools = [\"sum_up\"]");
    assert!(message.contains("did you mean `summarize`?"), "{message}");
    // Invalid examples are not also reported as missing.
    let message = load_errors("[intents.refund]\nexamples = [\" \"]");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn warnings_do_not_prevent_loading() {
    let text =
        "[ceilings]\ntimeout_seconds = 20\n[categories.web_tools.tools.x]\ntimeout_seconds = 21";
    let loaded = load_project(text).unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{}", render(&loaded.warnings));
    assert!(!loaded.warnings[0].is_error());
}

#[test]
fn an_issuer_needs_what_tokens_are_checked_with() {
    let message = load_errors("[oidc]\nissuer = \"https://a.example\"\n");
    assert!(message.contains("an issuer needs `audience`"), "{message}");
    assert!(message.contains("an issuer needs `roles`"), "{message}");
    let with =
        |lines: &str| format!("[oidc]\naudience = \"w\"\nroles = {{ r = [\"read\"] }}\n{lines}\n");
    for (lines, expected) in [
        ("issuer = \"http://a.example\"", "use https://"),
        (
            "issuer = \"https://a.example\"\ntenant = \"a\"\ntenant_claim = \"b\"",
            "cannot have both",
        ),
    ] {
        let message = load_errors(&with(lines));
        assert!(message.contains(expected), "{message}");
    }
    let message = load_errors(
        "[oidc]\nissuer = \"https://a.example\"\naudience = \"w\"\nroles = { x = [\"root\"] }\n",
    );
    assert!(
        message.contains("read, run, approve, operate, audit or admin"),
        "{message}"
    );
    let configuration = configured(&with("issuer = \"http://127.0.0.1:9000/realm\""));
    let settings = configuration.oidc().unwrap();
    assert_eq!(
        (
            settings.principal_claim.as_str(),
            settings.roles_claim.as_str()
        ),
        ("sub", "roles")
    );
}
