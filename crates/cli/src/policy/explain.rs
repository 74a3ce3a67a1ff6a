//! `windlass policy explain`: explains the decision about a call, the rule, and what would change it.

use serde_json::json;
use windlass_service::ExplainedCall;

use super::PolicySession;
use crate::CommandOutcome;
use crate::arguments::PolicyExplain;
use crate::program::Program;
use crate::report::Reporter;
use crate::source::read_agent_file;
use crate::terminal::{print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &PolicyExplain,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let session = PolicySession::new(program, None, reporter)?;
    let Some(file) = read_agent_file(&command.agent, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let Some(policy) = session.read(command.policy.as_deref())? else {
        return Ok(CommandOutcome::Failed);
    };
    let Some(policies) = session.load_or_report(&policy, file.tools())? else {
        return Ok(CommandOutcome::Failed);
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
    let explained = session
        .service
        .explain_call(&session.identity, policies, &call)?;
    let (assessment, explanation) = (&explained.assessment, &explained.explanation);
    let refusal = explained.refusal.as_ref();
    if command.json {
        let printed = json!({
            "policies": policy.name, "risk": assessment, "explanation": explanation,
            "request": explained.request, "refusal": refusal,
        });
        print_json(&format!("{printed}\n"))?;
    } else {
        if let Some(refusal) = refusal {
            print_line(&format!(
                "{}: {}\n  by the stage `{}`, before the policies: {}\nWithout that:",
                explanation.tool,
                refusal.verdict(),
                refusal.stage().as_str(),
                refusal.reason()
            ))?;
        }
        print_line(explanation.to_string().trim_end())?;
        print_line(&format!(
            "  risk: {} by {}",
            assessment.level, assessment.source
        ))?;
        for evidence in &assessment.evidence {
            print_line(&format!(
                "    {}: {}, {}",
                evidence.source, evidence.level, evidence.what
            ))?;
        }
        print_line(&format!("  policies: {}", policy.name))?;
    }
    Ok(CommandOutcome::Done)
}
