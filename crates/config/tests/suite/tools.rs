//! The settings of single tools.

use serde_json::json;
use windlass_config::{Configuration, ToolSettings};
use windlass_spec::registry::Window;
use windlass_spec::{NonEmptyText, Signature, TimeoutSeconds, ToolAttributes, ToolSpecification};

use super::{configured, load_project, render};

fn specification(name: &str, attributes: ToolAttributes) -> ToolSpecification {
    let signature = "(query: Text, page_size: Maybe Int, region: Maybe Text) --> Text";
    let signature = Signature::parse(signature).unwrap();
    let description = NonEmptyText::new("Finds something").unwrap();
    ToolSpecification::new(name.parse().unwrap(), description, signature)
        .with_attributes(attributes)
        .unwrap()
}

fn of_category(name: &str, category: &str) -> ToolSpecification {
    let attributes = ToolAttributes {
        category: Some(NonEmptyText::new(category).unwrap()),
        timeout_seconds: Some(TimeoutSeconds::try_from(50).unwrap()),
        ..ToolAttributes::default()
    };
    specification(name, attributes)
}

fn settings(configuration: &Configuration, tool: &ToolSpecification) -> ToolSettings {
    configuration.tool(tool.name(), Some(tool))
}

const CRM: &str = r#"
environment = "ENVIRONMENT"
permissions = ["crm:read"]
[categories.crm_tools]
schema = "{region: Text, page_size: Maybe Int, other: Maybe Text}"
permissions = ["crm:read"]
global_config = { region = "eu", page_size = 10, other = "x" }
rate_limits = { per_minute = 100 }
[categories.crm_tools.tools.find]
timeout_seconds = 20
parameters = { page_size = 20 }
rate_limits = { per_minute = 30, concurrent = 2 }
[categories.crm_tools.tools.find.environment_overrides.production]
timeout_seconds = 10
parameters = { page_size = 50 }
rate_limits = { per_minute = 5 }
[categories.crm_tools.tools.find.environment_overrides.staging]
enabled = false
"#;

fn crm(environment: &str) -> Configuration {
    configured(&CRM.replace("ENVIRONMENT", environment))
}

#[test]
fn timeout_comes_from_override_then_tool_then_specification_then_default() {
    let find = of_category("find", "web_tools");
    assert_eq!(settings(&crm("production"), &find).timeout.get(), 10);
    assert_eq!(settings(&crm("development"), &find).timeout.get(), 20);
    assert_eq!(settings(&Configuration::default(), &find).timeout.get(), 50);
    let silent = specification("find", ToolAttributes::default());
    assert_eq!(
        settings(&Configuration::default(), &silent).timeout.get(),
        30
    );
    let unknown = Configuration::default().tool(&"nothing".parse().unwrap(), None);
    assert_eq!(unknown.timeout.get(), 30);
}

#[test]
fn no_timeout_is_above_the_ceiling() {
    let ceiling = configured("[ceilings]\ntimeout_seconds = 15");
    let find = of_category("find", "web_tools");
    assert_eq!(settings(&ceiling, &find).timeout.get(), 15);
    assert_eq!(ceiling.tool(&"x".parse().unwrap(), None).timeout.get(), 15);
    let lowered = load_project(
        &format!("{CRM}[ceilings]\ntimeout_seconds = 15").replace("ENVIRONMENT", "production"),
    );
    assert_eq!(
        settings(&lowered.unwrap().configuration, &find)
            .timeout
            .get(),
        10
    );
}

#[test]
fn an_override_applies_in_its_environment_only() {
    let find = of_category("find", "crm_tools");
    let here = settings(&crm("development"), &find);
    assert_eq!(here.category.as_ref().unwrap().as_str(), "crm_tools");
    assert_eq!(here.demands, ["crm:read".parse().unwrap()].into());
    assert_eq!(here.rate_limits.get(Window::PerMinute).unwrap().get(), 30);
    assert_eq!(
        here.category_rate_limits
            .get(Window::PerMinute)
            .unwrap()
            .get(),
        100
    );
    assert_eq!(here.switched_off, None);
    let there = settings(&crm("production"), &find);
    assert_eq!(there.rate_limits.get(Window::PerMinute).unwrap().get(), 5);
    assert_eq!(there.rate_limits.get(Window::Concurrent).unwrap().get(), 2);
    assert_eq!(there.parameters["page_size"], json!(50));
}

#[test]
fn parameters_come_from_the_tool_else_from_its_category() {
    let find = of_category("find", "crm_tools");
    let here = settings(&crm("development"), &find);
    // `other` is not a parameter of the tool.
    assert_eq!(
        json!(here.parameters),
        json!({ "region": "eu", "page_size": 20 })
    );
    let sibling = of_category("list", "crm_tools");
    let here = settings(&crm("development"), &sibling);
    assert_eq!(
        json!(here.parameters),
        json!({ "region": "eu", "page_size": 10 })
    );
}

#[test]
fn a_tool_belongs_to_the_category_that_configures_it_else_to_its_declared_one() {
    let find = of_category("find", "web_tools");
    let category = |configuration: &Configuration, tool| settings(configuration, tool).category;
    assert_eq!(
        category(&crm("development"), &find).unwrap().as_str(),
        "crm_tools"
    );
    assert_eq!(
        category(&Configuration::default(), &find).unwrap().as_str(),
        "web_tools"
    );
    let lost = of_category("lost", "nowhere");
    assert_eq!(category(&Configuration::default(), &lost), None);
    // A tool without settings requires the permissions of its category.
    let sibling = of_category("list", "crm_tools");
    assert_eq!(settings(&crm("development"), &sibling).demands.len(), 1);
}

#[test]
fn a_tool_can_require_more_permissions_than_its_category() {
    let text = "[categories.file_tools]\npermissions = [\"files:read\"]\n[categories.file_tools.tools.delete_file]\npermissions = [\"files:delete\"]";
    let configuration = configured(text);
    let demands = |name: &str| settings(&configuration, &of_category(name, "file_tools")).demands;
    let both = ["files:delete", "files:read"].map(|name| name.parse().unwrap());
    assert_eq!(demands("delete_file"), both.into());
    assert_eq!(demands("read_file"), ["files:read".parse().unwrap()].into());
}

#[test]
fn the_reason_why_a_tool_is_switched_off_is_described() {
    let find = of_category("find", "crm_tools");
    let off = settings(&crm("staging"), &find)
        .switched_off
        .unwrap()
        .to_string();
    assert_eq!(
        off,
        "the tool `find` is switched off in staging, at windlass.toml:18"
    );
    let find = of_category("find", "web_tools");
    let off = |text: &str| {
        let off = settings(&configured(text), &find).switched_off;
        off.unwrap().to_string()
    };
    assert_eq!(
        off("[categories.web_tools.tools.find]\nenabled = false"),
        "the tool `find` is switched off, at windlass.toml:2"
    );
    assert_eq!(
        off("[categories.web_tools]\nenabled = false"),
        "its category `web_tools` is switched off, at windlass.toml:2"
    );
    assert_eq!(
        off("[categories.web_tools.environment_overrides.development]\nenabled = false"),
        "its category `web_tools` is switched off in development, at windlass.toml:2"
    );
    let on = "[categories.web_tools]\nenabled = false\n[categories.web_tools.environment_overrides.development]\nenabled = true";
    assert_eq!(settings(&configured(on), &find).switched_off, None);
}

#[test]
fn cause_does_not_repeat_that_the_tool_is_switched_off() {
    let cause = |configuration: &Configuration, category: &str| {
        let find = of_category("find", category);
        let off = settings(configuration, &find).switched_off;
        off.unwrap().cause()
    };
    assert_eq!(
        cause(&crm("staging"), "crm_tools"),
        "in staging, at windlass.toml:18"
    );
    let tool = configured("[categories.web_tools.tools.find]\nenabled = false");
    assert_eq!(cause(&tool, "web_tools"), "at windlass.toml:2");
    let category = configured("[categories.web_tools]\nenabled = false");
    assert_eq!(
        cause(&category, "web_tools"),
        "its category `web_tools` is switched off, at windlass.toml:2"
    );
}

#[test]
fn a_ceiling_is_the_limit_of_tools_that_have_none() {
    let ceiling = configured("[ceilings]\nrate_limits = { per_minute = 7 }");
    let find = of_category("find", "web_tools");
    let here = settings(&ceiling, &find);
    assert_eq!(here.rate_limits.get(Window::PerMinute).unwrap().get(), 7);
    // The ceiling limits all tools of a category together only if the category has a limit.
    assert!(here.category_rate_limits.is_empty());
    assert!(ceiling.principal("alice").rate_limits.is_empty());
}

fn checked(text: &str, tools: &[ToolSpecification]) -> String {
    render(&load_project(text).unwrap().configuration.check_tools(tools))
}

#[test]
fn parameters_must_fit_the_signature_of_the_tool() {
    let text = "[categories.web_tools.tools.find]\nparameters = { page_size = \"many\", qery = \"x\" }\n\
        [categories.web_tools.tools.find.environment_overrides.staging]\nparameters = { region = 5 }";
    assert_eq!(
        checked(text, &[of_category("find", "web_tools")]),
        "windlass.toml:2:16: categories.web_tools.tools.find.parameters.page_size: expected Int, found \"many\"\n\
         windlass.toml:2:36: categories.web_tools.tools.find.parameters.qery: there is no such parameter (did you mean `query`?)\n\
         windlass.toml:4:16: categories.web_tools.tools.find.environment_overrides.staging.parameters.region: expected Text, found 5"
    );
}

#[test]
fn global_config_must_fit_the_parameters_of_tools() {
    let text = "[categories.crm_tools]\nschema = \"{page_size: Text}\"\nglobal_config = { page_size = \"many\" }";
    let message = checked(text, &[of_category("find", "crm_tools")]);
    assert_eq!(
        message,
        "windlass.toml:3:19: categories.crm_tools.global_config.page_size: does not fit the tool `find`: expected Int, found \"many\""
    );
}

#[test]
fn the_category_of_a_tool_must_exist() {
    let message = checked("", &[of_category("find", "web_tool")]);
    assert!(message.starts_with("the specification of `find`: category: there is no category `web_tool`\n  help: did you mean `web_tools`?"), "{message}");
    let message = checked(
        "[categories.file_tools.tools.find]",
        &[of_category("find", "web_tools")],
    );
    assert!(message.contains("warning: categories.file_tools.tools.find: its specification declares the category `web_tools`; using `file_tools`"), "{message}");
}

#[test]
fn a_tool_of_an_unknown_category_is_switched_off() {
    let lost = of_category("lost", "nowhere");
    let off = settings(&Configuration::default(), &lost).switched_off;
    assert_eq!(
        off.unwrap().to_string(),
        "its category `nowhere` does not exist"
    );
    // The category that configures the tool takes precedence.
    let found = configured("[categories.web_tools.tools.lost]");
    assert_eq!(settings(&found, &lost).switched_off, None);
}

#[test]
fn unknown_agents_cause_warnings() {
    let configuration = configured("[agents.reseacher]\npermissions = []\n[agents.writer]");
    let agents = ["researcher", "writer"].map(|name| name.parse().unwrap());
    assert_eq!(
        render(&configuration.check_agents(&agents)),
        "windlass.toml:1:9: warning: agents.reseacher: there is no agent `reseacher`\n  help: did you mean `researcher`?"
    );
}

#[test]
fn unknown_tools_cause_warnings() {
    let text = "[risk]\nfnd = \"reversible\"\n[selection]\nalways = [\"find\", \"finish\"]\n\
        [intents.fetch]\ntools = [\"get\"]\n[categories.web_tools.tools.find_all]";
    let tools = [of_category("find", "web_tools")];
    assert_eq!(
        checked(text, &tools),
        "windlass.toml:2:1: warning: risk.fnd: there is no tool `fnd`\n  help: did you mean `find`?\n\
         windlass.toml:4:19: warning: selection.always[1]: there is no tool `finish`\n\
         windlass.toml:6:10: warning: intents.fetch.tools[0]: there is no tool `get`\n\
         windlass.toml:7:29: warning: categories.web_tools.tools.find_all: there is no tool `find_all`\n  help: did you mean `find`?"
    );
}
