//! The rules between values.

use super::{configured, load_project, shown, warned, wrong};

#[test]
fn the_environment_is_predefined_or_declared() {
    for good in ["development", "staging", "production"] {
        configured(&format!("environment = \"{good}\""));
    }
    configured("environment = \"qa\"\nenvironments = [\"qa\"]");
    assert_eq!(
        wrong("environment = \"qa\""),
        "windlass.toml:1:1: environment: there is no environment `qa`\n  \
         help: known are `development`, `production`, `staging`; declare others: environments = [\"qa\"]"
    );
}

#[test]
fn environment_overrides_are_for_environments_that_exist() {
    let told =
        wrong("[categories.web_tools.tools.x.environment_overrides.prodution]\nenabled = false");
    assert_eq!(
        told,
        "windlass.toml:1:53: categories.web_tools.tools.x.environment_overrides.prodution: there is no environment `prodution`\n  \
         help: did you mean `production`? Known are `development`, `production`, `staging`"
    );
    let told = wrong("[categories.web_tools.environment_overrides.qa]\nenabled = false");
    assert!(told.contains("there is no environment `qa`"), "{told}");
}

#[test]
fn permissions_are_of_the_vocabulary() {
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
        let told = wrong(text);
        let expected = format!(
            "windlass.toml:2:28: {key}.permissions[1]: there is no permission `crm:read`\n  \
             help: did you mean `im:read`? Otherwise declare permissions of your own: permissions = [\"crm:read\"]"
        );
        assert_eq!(told, expected);
        configured(&format!("permissions = [\"crm:read\"]\n{text}"));
    }
    let told = wrong("[categories.web_tools.tools.x]\npermissions = [\"web:raed\"]");
    assert!(
        told.contains("categories.web_tools.tools.x.permissions[0]: there is no"),
        "{told}"
    );
    let told = wrong("[principals.a]\npermissions = [\"channel:history\"]");
    assert!(
        told.contains("help: did you mean `channels:history`?"),
        "{told}"
    );
}

#[test]
fn a_category_is_predefined_or_declared_with_a_schema() {
    for name in [
        "slack_tools",
        "openai_tools",
        "analysis_tools",
        "file_tools",
    ] {
        configured(&format!("[categories.{name}]\nenabled = false"));
    }
    let told = wrong("[categories.slak_tools]\nenabled = false");
    assert!(
        told.starts_with(
            "windlass.toml:1:13: categories.slak_tools: there is no category `slak_tools`"
        ),
        "{told}"
    );
    assert!(
        told.contains("did you mean `slack_tools`? Otherwise declare"),
        "{told}"
    );
    configured("[categories.crm_tools]\nschema = \"{}\"");
    configured(
        "[categories.crm_tools]\nschema = \"{region: Text}\"\nglobal_config = { region = \"eu\" }",
    );
}

#[test]
fn a_predefined_category_keeps_its_schema() {
    let told = wrong("[categories.slack_tools]\nschema = \"{a: Text}\"");
    assert!(
        told.contains("`slack_tools` is predefined and has a schema of its own"),
        "{told}"
    );
}

#[test]
fn a_schema_is_a_record_type() {
    for bad in ["Text", "{region: Txt}", "region: Text", "{"] {
        let told = wrong(&format!("[categories.crm_tools]\nschema = \"{bad}\""));
        assert!(
            told.starts_with("windlass.toml:2:1: categories.crm_tools.schema: "),
            "{told}"
        );
        assert!(!told.contains("there is no category"), "{told}");
    }
}

#[test]
fn global_config_fits_the_schema_of_its_category() {
    let told =
        wrong("[categories.slack_tools.global_config]\nchanel = \"general\"\nlimit = \"many\"");
    assert_eq!(
        told,
        "windlass.toml:2:1: categories.slack_tools.global_config.chanel: there is no such key (did you mean `channel`?)\n\
         windlass.toml:3:1: categories.slack_tools.global_config.limit: expected Int, found \"many\""
    );
    let told = wrong(
        "[categories.crm_tools]\nschema = \"{region: Text, page_size: Maybe Int}\"\n[categories.crm_tools.global_config]\npage_size = 5",
    );
    assert!(
        told.contains("categories.crm_tools.global_config.region: expected Text, found nothing"),
        "{told}"
    );
    // A required value is missed also where there is no global_config at all.
    let told = wrong("[categories.crm_tools]\nschema = \"{region: Text}\"");
    assert!(
        told.contains("global_config.region: expected Text, found nothing"),
        "{told}"
    );
}

#[test]
fn a_tool_belongs_to_one_category() {
    let told = wrong("[categories.web_tools.tools.find]\n[categories.file_tools.tools.find]");
    assert_eq!(
        told,
        "windlass.toml:2:30: categories.file_tools.tools.find: `find` is in the category `web_tools` already, at windlass.toml:1\n  \
         help: a tool belongs to one category; remove one of the two"
    );
}

#[test]
fn an_override_cannot_switch_a_tool_on_in_a_category_that_is_off_there() {
    let off_everywhere = "[categories.web_tools]\nenabled = false\n[categories.web_tools.tools.x.environment_overrides.production]\nenabled = true";
    assert_eq!(
        wrong(off_everywhere),
        "windlass.toml:4:1: categories.web_tools.tools.x.environment_overrides.production.enabled: \
         the tool cannot be switched on in production: its category `web_tools` is switched off there, at windlass.toml:2\n  \
         help: switch the category on: [categories.web_tools.environment_overrides.production] enabled = true"
    );
    let off_there = "[categories.web_tools.environment_overrides.production]\nenabled = false\n[categories.web_tools.tools.x.environment_overrides.production]\nenabled = true";
    assert!(wrong(off_there).contains("at windlass.toml:2"));
    let elsewhere = off_there.replacen("production", "staging", 1);
    assert!(load_project(&elsewhere).is_ok());
    let on_there = format!(
        "{off_everywhere}\n[categories.web_tools.environment_overrides.production]\nenabled = true"
    );
    assert!(load_project(&on_there).is_ok());
}

#[test]
fn switching_on_a_tool_of_a_category_that_is_off_has_no_effect() {
    let told = warned(
        "[categories.web_tools]\nenabled = false\n[categories.web_tools.tools.x]\nenabled = true",
    );
    assert_eq!(
        told,
        "windlass.toml:4:1: warning: categories.web_tools.tools.x.enabled: has no effect: `web_tools` is switched off at windlass.toml:2"
    );
}

#[test]
fn a_value_above_a_ceiling_is_lowered_and_told() {
    let text = "[ceilings]\ntimeout_seconds = 20\nrate_limits = { per_minute = 5 }\n\
        [principals.a]\nrate_limits = { per_minute = 6, per_hour = 100 }\n\
        [categories.web_tools]\nrate_limits = { per_minute = 7 }\n\
        [categories.web_tools.tools.x]\ntimeout_seconds = 21\nrate_limits = { per_minute = 5 }\n\
        [categories.web_tools.tools.x.environment_overrides.staging]\ntimeout_seconds = 22";
    assert_eq!(
        warned(text),
        "windlass.toml:5:17: warning: principals.a.rate_limits.per_minute: 6 is above the ceiling that windlass.toml:3 sets; 5 holds\n\
         windlass.toml:7:17: warning: categories.web_tools.rate_limits.per_minute: 7 is above the ceiling that windlass.toml:3 sets; 5 holds\n\
         windlass.toml:9:1: warning: categories.web_tools.tools.x.timeout_seconds: 21 is above the ceiling that windlass.toml:2 sets; 20 holds\n\
         windlass.toml:12:1: warning: categories.web_tools.tools.x.environment_overrides.staging.timeout_seconds: 22 is above the ceiling that windlass.toml:2 sets; 20 holds"
    );
}

#[test]
fn an_intent_of_ones_own_needs_examples() {
    configured("[intents.summarize]\ntools = [\"sum_up\"]");
    configured("[intents.refund]\nexamples = [\"I want my money back\"]");
    let told = wrong("[intents.refund]\ntools = [\"pay_back\"]");
    assert!(
        told.starts_with(
            "windlass.toml:1:10: intents.refund: an intent of one's own needs examples"
        ),
        "{told}"
    );
    let told = wrong("[intents.sumarize]\ntools = [\"sum_up\"]");
    assert!(told.contains("did you mean `summarize`?"), "{told}");
    // Examples that were refused are not missed as well.
    let told = wrong("[intents.refund]\nexamples = [\" \"]");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn warnings_do_not_keep_a_configuration_from_loading() {
    let text =
        "[ceilings]\ntimeout_seconds = 20\n[categories.web_tools.tools.x]\ntimeout_seconds = 21";
    let loaded = load_project(text).unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{}", shown(&loaded.warnings));
    assert!(!loaded.warnings[0].is_error());
}
