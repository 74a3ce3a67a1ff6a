//! `windlass policy explain`: what would be decided about a call, by which rule, and what would change
//! it.

use serde_json::json;
use windlass_service::ExplainedCall;

use super::Desk;
use crate::Outcome;
use crate::arguments::PolicyExplain;
use crate::program::Program;
use crate::report::Reporter;
use crate::schema::read_file;
use crate::terminal::{put, say};

pub(super) fn run(
    program: &Program,
    command: &PolicyExplain,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let desk = Desk::new(program, None, reporter)?;
    let Some(file) = read_file(&command.agent, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let Some(policy) = desk.read(command.policy.as_deref())? else {
        return Ok(Outcome::Failed);
    };
    let Some(policies) = desk.load_or_complain(&policy, file.tools())? else {
        return Ok(Outcome::Failed);
    };
    let call = ExplainedCall {
        file: &file,
        place: &command.agent.to_string_lossy(),
        tool: &command.tool,
        arguments: &command.args,
        confidence: command.confidence,
        environment: command.environment.as_deref(),
        is_tainted: command.tainted,
    };
    let explained = desk.service.explain_call(&desk.identity, policies, &call)?;
    let (assessment, explanation) = (&explained.assessment, &explained.explanation);
    if command.json {
        let printed = json!({
            "policies": policy.name, "risk": assessment, "explanation": explanation,
            "request": explained.request,
        });
        put(&format!("{printed}\n"))?;
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
