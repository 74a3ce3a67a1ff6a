//! The gate, which every call passes before a tool may run. It is a fixed sequence of stages. The first
//! stage that refuses decides, and its decision is recorded. A call that passes all stages gets a
//! verdict from its risk and the policies: run at once, be held, wait for approval, or not run. A call
//! that may run gets a [`Permit`]. The gate does not run tools.

mod decision;
mod permit;
mod rules;
mod terms;

pub use decision::{Decision, PriorApproval, Stage, Verdict};
pub(crate) use permit::permit;
pub use permit::{OtherCall, Permit, PermitError};
pub use rules::{DEFAULT_ENVIRONMENT, EVERYBODY, Entitlement, Governance, Rules, ToolRule};
pub use terms::{ApprovalTerms, ApproverGroups, EscalationTerms, GroupTerms};

use std::collections::BTreeSet;
use windlass_policy::{Request, Session};

use windlass_spec::registry::Permission;
use windlass_spec::{AgentName, CallRecord, ErrorCategory, RiskLevel, ToolSpecification};

use crate::approval::{Digest, TenantPrincipal};
use crate::limits::{Readiness, format_wait};

/// The context of a run in which the gate decides about one of its calls.
#[derive(Clone, Copy)]
pub struct GateContext<'a> {
    /// The agent that makes the call.
    pub agent: &'a AgentName,
    /// The principal it acts for.
    pub principal: &'a TenantPrincipal,
    /// The specification of the tool, if the agent has it.
    pub specification: Option<&'a ToolSpecification>,
    /// The permissions it may hold at most: those of the run that delegated the work.
    pub inherited: Option<&'a BTreeSet<Permission>>,
    /// Whether a rate limit is exhausted, or the tool keeps failing.
    pub readiness: &'a Readiness,
    /// Calls of the run before this one that ran or may run.
    pub calls_allowed: u32,
    /// The maximum number of calls of the run.
    pub max_calls: u32,
    /// What the run did before this call.
    pub session: Session,
    /// Whether untrusted content may have led to this call.
    pub is_tainted: bool,
    /// The arguments that come from untrusted content.
    pub tainted_arguments: &'a [String],
}

/// Decides about one call. Pure: the same call in the same context gets the same decision.
#[must_use]
pub fn decide(call: &CallRecord, context: &GateContext<'_>, rules: &Rules) -> Decision {
    let decision =
        refuse_early(call, context, rules).unwrap_or_else(|| by_risk(call, context, rules));
    Decision {
        configuration: rules.configuration().map(Into::into),
        ..decision
    }
}

/// The refusal of a stage before risk and policies, if one of them refuses.
#[must_use]
pub fn refuse_early(
    call: &CallRecord,
    context: &GateContext<'_>,
    rules: &Rules,
) -> Option<Decision> {
    let stages: [Refusal; 6] = [known_tool, enabled, arguments, permission, ready, budget];
    stages
        .into_iter()
        .find_map(|stage| stage(call, context, rules))
}

/// A stage that can only refuse.
type Refusal = fn(&CallRecord, &GateContext<'_>, &Rules) -> Option<Decision>;

fn known_tool(call: &CallRecord, context: &GateContext<'_>, _: &Rules) -> Option<Decision> {
    let name = call.tool_name().as_str();
    context.specification.is_none().then(|| {
        let reason = format!("the agent `{}` has no tool `{name}`", context.agent);
        Decision::deny(Stage::KnownTool, ErrorCategory::UnknownTool, reason)
    })
}

fn enabled(call: &CallRecord, _: &GateContext<'_>, rules: &Rules) -> Option<Decision> {
    let name = call.tool_name().as_str();
    rules.switched_off(name).map(|why| {
        let reason = format!("the tool `{name}` is switched off ({why}); continue without it");
        Decision::deny(Stage::Enabled, ErrorCategory::PermissionDenied, reason)
    })
}

fn permission(call: &CallRecord, context: &GateContext<'_>, rules: &Rules) -> Option<Decision> {
    let name = call.tool_name().as_str();
    let (demands, category) = rules.demands(name)?;
    let held = rules.permissions(context.principal, context.agent, context.inherited);
    let missing: Vec<&str> = demands.difference(&held).map(Permission::as_str).collect();
    (!missing.is_empty()).then(|| {
        let by = category.map_or(String::new(), |name| format!(" of the category `{name}`"));
        let reason = format!(
            "the tool `{name}`{by} requires `{}`, which the agent `{}` does not hold when it acts for \
             {}",
            missing.join("`, `"),
            context.agent,
            context.principal.principal,
        );
        Decision::deny(Stage::Permission, ErrorCategory::PermissionDenied, reason)
    })
}

fn ready(call: &CallRecord, context: &GateContext<'_>, _: &Rules) -> Option<Decision> {
    let name = call.tool_name().as_str();
    let (stage, category, reason) = match context.readiness {
        Readiness::Ready | Readiness::Trial { .. } => return None,
        Readiness::Limited { limit, until, wait } => {
            let again = match until {
                Some(until) => format!("try again at {until}, in {}", format_wait(*wait)),
                None => "try again when one of the calls has ended".to_owned(),
            };
            let reason = format!("the rate limit {limit} is exhausted; {again}");
            (Stage::RateLimit, ErrorCategory::RateLimited, reason)
        }
        Readiness::Failing {
            failures,
            until,
            wait,
        } => {
            let reason = format!(
                "the tool `{name}` failed {failures} times in a row and is paused; try again at \
                 {until}, in {}, or continue without it",
                format_wait(*wait)
            );
            (Stage::Health, ErrorCategory::Unavailable, reason)
        }
    };
    let mut decision = Decision::deny(stage, category, reason);
    decision.retry_at = context.readiness.retry_at();
    Some(decision)
}

fn arguments(call: &CallRecord, context: &GateContext<'_>, _: &Rules) -> Option<Decision> {
    let misfits = context
        .specification?
        .signature()
        .misfits(&serde_json::Value::Object(call.arguments().clone()));
    (!misfits.is_empty()).then(|| {
        let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        let reason = format!("the arguments do not fit: {}", misfits.join("; "));
        Decision::deny(Stage::Arguments, ErrorCategory::InvalidArguments, reason)
    })
}

fn budget(_: &CallRecord, context: &GateContext<'_>, _: &Rules) -> Option<Decision> {
    (context.calls_allowed >= context.max_calls).then(|| {
        let reason = format!(
            "the run has used all of its {} calls; finish with what you know",
            context.max_calls
        );
        Decision::deny(Stage::Budget, ErrorCategory::BudgetExceeded, reason)
    })
}

/// The last stages: the risk of the call, the floor and the policies.
fn by_risk(call: &CallRecord, context: &GateContext<'_>, rules: &Rules) -> Decision {
    let risk = rules.assess(call.tool_name(), call.arguments());
    let request = request(call, context, rules.environment(), risk.level);
    let decided = rules.decide_by_policies(&request);
    let window = rules.undo_window(context.specification);
    Decision {
        digest: Some(Digest::of_call(call.tool_name(), call.arguments())),
        is_tainted: context.is_tainted,
        tainted_arguments: context.tainted_arguments.to_vec(),
        environment: Some(rules.environment().to_owned()),
        terms: ApprovalTerms::new(&decided, rules.approvers()),
        ..Decision::by_policy(
            &decided,
            decided.floor.describe(call.confidence(), rules.floor()),
            risk,
            window,
        )
    }
}

/// The call as the policies see it.
pub(crate) fn request<'a>(
    call: &'a CallRecord,
    context: &GateContext<'a>,
    environment: &'a str,
    risk: RiskLevel,
) -> Request<'a> {
    Request {
        principal: context.principal.principal.as_str().into(),
        tenant: context.principal.tenant.as_str().into(),
        agent: context.agent.as_str().into(),
        tool: call.tool_name().as_str().into(),
        input: std::borrow::Cow::Borrowed(call.arguments()),
        risk,
        confidence: call.confidence(),
        environment: environment.into(),
        tainted: context.is_tainted,
        session: context.session,
    }
}
