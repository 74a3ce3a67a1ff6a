//! `windlass policy check`: checks policies against tools, and reports every error with its location.

use serde_json::{Value, json};
use windlass_policy::{PolicyWarning, Rule, RuleEffect};

use super::{PolicySession, agent_files, as_object, report_errors, tools_of};
use crate::CommandOutcome;
use crate::arguments::PolicyCheck;
use crate::plural::counted;
use crate::program::Program;
use crate::report::Reporter;
use crate::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &PolicyCheck,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let session = PolicySession::new(program, None, reporter)?;
    let Some(files) = agent_files(&command.agent, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let Some(policy) = session.read(command.file.as_deref())? else {
        return Ok(CommandOutcome::Failed);
    };
    let tools = tools_of(&files);
    let loaded = session.load(&policy, &tools)?;
    if command.json {
        let object = match &loaded {
            Ok(policies) => json!({
                "file": policy.name, "valid": true, "tools": tools.len(), "errors": [],
                "rules": policies.rules().into_iter().map(rule).collect::<Vec<_>>(),
                "warnings": policies.warnings().iter().map(warning).collect::<Vec<_>>(),
            }),
            Err(errors) => json!({
                "file": policy.name, "valid": false, "tools": tools.len(),
                "errors": errors.iter().map(as_object).collect::<Vec<_>>(),
            }),
        };
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::from_success(loaded.is_ok()));
    }
    let policies = match loaded {
        Ok(policies) => policies,
        Err(errors) => {
            report_errors(&policy, &errors)?;
            return Ok(CommandOutcome::Failed);
        }
    };
    if tools.is_empty() {
        eprint_line(
            "no tools were given, so rules were checked without them; pass agent files with `--agent`",
        )?;
    }
    // Without tools, every rule would get a warning that it matches none.
    for warning in policies.warnings().iter().filter(|_| !tools.is_empty()) {
        let separator = if warning.place.is_some() { ":" } else { ": " };
        eprint_line(&format!("warning: {}{separator}{warning}", policy.name))?;
    }
    let rules = policies.rules();
    print_line(&format!(
        "{}: valid, {} for {}",
        policy.name,
        counted(rules.len(), "rule", "rules"),
        counted(tools.len(), "tool", "tools")
    ))?;
    for rule in rules {
        let reason = rule
            .reason
            .as_deref()
            .map_or_else(String::new, |reason| format!(": {reason}"));
        print_line(&format!(
            "  {} {} `{}`{reason}",
            rule.place,
            effect(rule.effect),
            rule.id
        ))?;
    }
    Ok(CommandOutcome::Done)
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id, "effect": rule.effect, "reason": rule.reason,
        "security_level": rule.security_level, "line": rule.place.line, "column": rule.place.column,
    })
}

fn warning(warning: &PolicyWarning) -> Value {
    json!({
        "line": warning.place.map(|place| place.line),
        "column": warning.place.map(|place| place.column),
        "rule": warning.rule, "message": warning.message,
    })
}

const fn effect(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Permit => "permit",
        RuleEffect::Forbid => "forbid",
    }
}
