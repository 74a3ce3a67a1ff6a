//! `windlass policy explain`: what would be decided about a call, by which rule, and what would change
//! it.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use windlass_core::risk::{KnownTool, ToolRisk};
use windlass_policy::{Request, Session};
use windlass_runtime::local_identity;
use windlass_spec::{Confidence, ToolSpecification};

use super::PolicyText;
use crate::Outcome;
use crate::arguments::PolicyExplain;
use crate::refusal::Refusal;
use crate::report::Reporter;
use crate::schema::{read_file, unknown};
use crate::settings::configured;
use crate::terminal::{put, say};

pub(super) fn run(command: &PolicyExplain, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(file) = read_file(&command.agent, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let name = command.tool.as_str();
    let Some(tool) = file.tool(name) else {
        let known: Vec<&str> = file
            .tools()
            .iter()
            .map(|tool| tool.name().as_str())
            .collect();
        let message = unknown("tool", name, &known, &command.agent.to_string_lossy());
        let (message, hint) = message.split_once("\nhint: ").unwrap_or((&message, ""));
        return Err(Refusal::usage("unknown_tool", message).hint(hint).into());
    };
    let input = arguments(&command.args, tool)?;
    let confidence = command.confidence.map(Confidence::try_from).transpose();
    let confidence =
        confidence.map_err(|error| Refusal::usage("not_a_confidence", error.to_string()))?;
    let Some(policy) = PolicyText::read(command.policy.as_deref(), reporter)? else {
        return Ok(Outcome::Failed);
    };
    let Some(policies) = policy.load_or_complain(file.tools())? else {
        return Ok(Outcome::Failed);
    };
    let configured = configured()?;
    let configuration = &configured.configuration;
    let policies = policies.with_floor(configured.floor());
    let known = KnownTool {
        operator_override: configuration.risk().get(tool.name()).copied(),
        ..KnownTool::specified(tool)
    };
    let assessment = ToolRisk::of(&known).with_arguments(&input);
    let environment = command.environment.clone();
    let environment = environment.unwrap_or_else(|| configuration.environment().to_string());
    let agent = file
        .agents()
        .iter()
        .find(|agent| agent.tool(name).is_some());
    let who = local_identity()?;
    let request = Request {
        principal: Cow::Owned(who.principal.to_string()),
        tenant: Cow::Owned(who.tenant.to_string()),
        agent: agent.map_or(Cow::Borrowed("none"), |agent| {
            Cow::Borrowed(agent.name().as_str())
        }),
        tool: Cow::Borrowed(name),
        input: Cow::Borrowed(&input),
        risk: assessment.level,
        confidence,
        environment: Cow::Borrowed(&environment),
        tainted: command.tainted,
        session: Session::default(),
    };
    let explanation = policies.explain(&request);
    if command.json {
        let told = json!({
            "policies": policy.name, "risk": assessment, "explanation": explanation, "request": request,
        });
        put(&format!("{told}\n"))?;
    } else {
        say(explanation.to_string().trim_end())?;
        say(&format!(
            "  risk: {} by {}",
            assessment.level, assessment.source
        ))?;
        for evidence in &assessment.evidence {
            say(&format!(
                "    {}: {}, {}",
                evidence.source, evidence.level, evidence.what
            ))?;
        }
        say(&format!("  policies: {}", policy.name))?;
    }
    Ok(Outcome::Done)
}

/// The arguments that were typed, if the tool takes them.
fn arguments(text: &str, tool: &ToolSpecification) -> Result<Map<String, Value>, Refusal> {
    let arguments: Value =
        serde_json::from_str(text).map_err(|error| {
            Refusal::usage("not_json", format!("the arguments are not JSON: {error}"))
                .hint(format!("`{}` takes {}", tool.name(), tool.signature()))
        })?;
    let misfits = tool.signature().misfits(&arguments);
    match arguments {
        Value::Object(arguments) if misfits.is_empty() => Ok(arguments),
        _ => {
            let misfits: Vec<String> = misfits.iter().map(|misfit| format!("  {misfit}")).collect();
            let message = format!(
                "the arguments do not fit `{}`:\n{}",
                tool.name(),
                misfits.join("\n")
            );
            Err(Refusal::usage("arguments_do_not_fit", message)
                .hint(format!("it takes {}", tool.signature())))
        }
    }
}
