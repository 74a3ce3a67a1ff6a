//! Policies: shows and checks them, explains decisions, and replays past calls against changed policies.
//! Nothing runs, and nothing is changed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::gate::{GateContext, Governance, Rules, refuse_early};
use windlass_core::limits::Readiness;
use windlass_core::risk::{Assessment, KnownTool, ToolRisk};
use windlass_core::run::{CallKind, Run, Settings};
use windlass_policy::{
    DEFAULT_POLICIES, Decision, Difference, Explanation, Policies, PolicyError, Problem, Request,
    Session,
};
use windlass_runtime::lasting;
use windlass_spec::number::read_json;
use windlass_spec::{
    AgentFile, CallId, CallRecord, Confidence, NonEmptyText, RunId, ToolSpecification, Turn,
};
use windlass_store::{RunFilter, RunSummary};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::libraries::unknown_name_message;
use crate::options::Notice;
use crate::service::Service;

/// The name of the built-in policies.
const DEFAULT_NAME: &str = "default policies";

/// Policies and where they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// The name of the file, or of the built-in policies.
    pub name: String,
    /// The policies.
    pub text: String,
}

/// A call whose decision is to be explained.
#[derive(Debug, Clone)]
pub struct ExplainedCall<'f> {
    /// The agent file that declares the tool.
    pub file: &'f AgentFile,
    /// What the file is called in messages.
    pub place: &'f str,
    /// The tool.
    pub tool: &'f str,
    /// Its arguments: the text of a JSON object.
    pub arguments: &'f str,
    /// How confident the model is, from 0 to 1, if it states that.
    pub confidence: Option<f64>,
    /// The environment, instead of the configuration's.
    pub environment: Option<&'f str>,
    /// Whether untrusted content may have led to the call.
    pub is_tainted: bool,
}

/// The decision about a call, and why.
#[derive(Debug, Clone)]
pub struct ExplainedDecision {
    /// The request to the policies.
    pub request: Request<'static>,
    /// How the risk of the call was assessed.
    pub assessment: Assessment,
    /// The decision of floor and policies, and the rules that led to it.
    pub explanation: Explanation,
    /// The refusal of the gate before it asks the policies, if it refuses: the tool is switched off, the
    /// agent lacks a permission, or a limit is exhausted.
    pub refusal: Option<windlass_core::gate::Decision>,
}

/// The calls of past runs, as the policies saw them.
#[derive(Debug, Clone, Default)]
pub struct RecordedCalls {
    /// The calls, the oldest first.
    pub calls: Vec<RecordedCall>,
    /// The tools, by name, as the latest run that had them knew them.
    pub tools: BTreeMap<String, Arc<ToolSpecification>>,
    /// How many runs could not be read.
    pub unreadable_runs: usize,
}

/// A call of a past run.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// The call.
    pub call: CallId,
    /// The request to the policies.
    pub request: Request<'static>,
    /// What the policies decided then, as far as it is recorded.
    pub decision: Option<Decision>,
}

/// The decisions that changed policies would make differently.
#[derive(Debug, Clone, Default)]
pub struct PolicyReplay {
    /// The calls that would be decided differently.
    pub differences: Vec<ReplayedCall>,
    /// How many calls were compared.
    pub compared: usize,
    /// How many calls were left out because their tools are not declared.
    pub left_out: usize,
}

impl PolicyReplay {
    /// How many calls would be decided less strictly.
    #[must_use]
    pub fn weaker_count(&self) -> usize {
        let differences = self.differences.iter();
        differences.filter(|one| one.difference.is_weaker()).count()
    }
}

/// A call that would be decided differently.
#[derive(Debug, Clone)]
pub struct ReplayedCall {
    /// The call.
    pub call: CallId,
    /// The request to the policies.
    pub request: Request<'static>,
    /// The old decision and the new one.
    pub difference: Difference,
}

impl Service {
    /// The policies of new runs.
    ///
    /// # Errors
    /// If the identity may not read, or the configuration or the policies cannot be read.
    pub fn active_policies(&self, identity: &Identity) -> Result<PolicySource, ServiceError> {
        identity.require(Scope::Read)?;
        let project = self.project()?;
        let configured = &project.configured;
        let file = configured.policy_file.as_ref();
        if !configured.restricting_policies.is_empty() {
            let message = "warning: the policies of the project restrict calls further; they are not part of this";
            self.notify(&Notice::Warning(message.to_owned()));
        }
        Ok(PolicySource {
            name: file.map_or(DEFAULT_NAME.to_owned(), |file| file.display().to_string()),
            text: configured.policies.clone(),
        })
    }

    /// Loads policies for these tools and runs their examples. Returns the policies or all their errors. A
    /// policy may also name tools of the configured libraries.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn load_policies(
        &self,
        identity: &Identity,
        policies: &PolicySource,
        tools: &[Arc<ToolSpecification>],
    ) -> Result<Result<Policies, Vec<PolicyError>>, ServiceError> {
        identity.require(Scope::Read)?;
        // Policies can be checked without a configuration.
        let others = match self.project() {
            Ok(project) => self.tools_named_in(&policies.text, &project, tools),
            Err(_) => Vec::new(),
        };
        let known = tools.iter().chain(&others).map(Arc::as_ref);
        let mut loaded = Policies::load(&policies.text, known);
        if let (Err(errors), true) = (&mut loaded, tools.is_empty()) {
            for error in errors {
                // The tool is unknown because no tools were given.
                if matches!(error.problem, Problem::UnknownTool(_)) {
                    let hint = "name the agent files that declare the tools with `--agent`";
                    error.hint = Some(hint.to_owned());
                }
            }
        }
        Ok(loaded)
    }

    /// Explains the decision about a call on behalf of the identity: by which rule, and what would change it.
    ///
    /// # Errors
    /// If the identity may not read; if the file declares no such tool; if the arguments or the confidence
    /// do not fit; or if the configuration cannot be used.
    pub fn explain_call(
        &self,
        identity: &Identity,
        policies: Policies,
        call: &ExplainedCall<'_>,
    ) -> Result<ExplainedDecision, ServiceError> {
        identity.require(Scope::Read)?;
        let tool = call
            .file
            .tool(call.tool)
            .ok_or_else(|| no_such_tool(call))?;
        let input = arguments(call.arguments, tool)?;
        let confidence = call.confidence.map(Confidence::try_from).transpose();
        let confidence = confidence
            .map_err(|error| ServiceError::invalid("not_a_confidence", error.to_string()))?;
        let project = self.project()?;
        let configuration = project.configuration();
        let policies = policies.with_floor(project.configured.floor());
        let input_of_record = input.clone();
        let known = KnownTool {
            operator_override: configuration.risk().get(tool.name()).copied(),
            at_least: configuration.least_risks().get(tool.name()).copied(),
            ..KnownTool::specified(tool)
        };
        let assessment = ToolRisk::of(&known).with_arguments(&input);
        let environment = call.environment.map(str::to_owned);
        let mut agents = call.file.agents().iter();
        let agent = agents.find(|agent| agent.tool(call.tool).is_some());
        let request = Request {
            principal: Cow::Owned(identity.principal().to_string()),
            tenant: Cow::Owned(identity.tenant().to_string()),
            agent: agent.map_or(Cow::Borrowed("none"), |agent| {
                Cow::Owned(agent.name().to_string())
            }),
            tool: Cow::Owned(call.tool.to_owned()),
            input: Cow::Owned(input),
            risk: assessment.level,
            confidence,
            environment: Cow::Owned(
                environment.unwrap_or_else(|| configuration.environment().to_string()),
            ),
            tainted: call.is_tainted,
            session: Session::default(),
        };
        Ok(ExplainedDecision {
            refusal: self.early_refusal(identity, call, input_of_record)?,
            explanation: policies.explain(&request),
            request,
            assessment,
        })
    }

    /// The refusal of the gate before it asks the policies, for the first call of a new run.
    fn early_refusal(
        &self,
        identity: &Identity,
        call: &ExplainedCall<'_>,
        input: Map<String, Value>,
    ) -> Result<Option<windlass_core::gate::Decision>, ServiceError> {
        let mut agents = call.file.agents().iter();
        let agent = agents.find(|agent| agent.tool(call.tool).is_some());
        let Some((agent, tool)) = agent.and_then(|agent| Some((agent, agent.tool(call.tool)?)))
        else {
            return Ok(None);
        };
        let mut configured = self.project()?.configured.clone();
        let environments = configured.configuration.environments();
        if let Some(name) = call.environment
            && let Ok(environment) = environments.require(name).cloned()
        {
            configured.configuration = configured.configuration.in_environment(&environment);
        }
        let governance = Governance {
            // Only the stages before the policies are asked.
            policies: DEFAULT_POLICIES.to_owned(),
            restricting_policies: Vec::new(),
            ..configured.governance([agent])
        };
        let rules = Rules::new(&governance, agent, call.file.agents());
        let rules = rules.map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            ServiceError::failed(errors.join("; "))
        })?;
        let failed = |error: &dyn std::error::Error| ServiceError::failed(error.to_string());
        let id = CallId {
            run: RunId::new("explained").map_err(|error| failed(&error))?,
            turn: Turn::FIRST,
            index: 0,
        };
        let now = self.now();
        let record = CallRecord::requested(id, tool.name().clone(), input, now);
        let settings = Settings::default();
        let context = GateContext {
            agent: agent.name(),
            principal: identity.person(),
            specification: Some(tool),
            inherited: None,
            readiness: &self.stored_readiness(identity, tool, &rules)?,
            calls_allowed: 0,
            max_calls: settings.max_calls,
            session: Session::default(),
            is_tainted: call.is_tainted,
            tainted_arguments: &[],
        };
        Ok(refuse_early(&record, &context, &rules))
    }

    /// Whether a lasting rate limit of a tool is exhausted or the tool keeps failing, by what is stored.
    fn stored_readiness(
        &self,
        identity: &Identity,
        tool: &ToolSpecification,
        rules: &Rules,
    ) -> Result<Readiness, ServiceError> {
        let (store, now) = (self.store()?, self.now());
        let tenant = identity.tenant().as_str();
        let limits = lasting(&rules.limits(tool.name(), identity.person()));
        if let Some(used_up) = store.used_up(tenant, &limits, now)? {
            return Ok(Readiness::limited(used_up.limit, used_up.until, now));
        }
        let breaker = rules.breaker();
        let ends = store.latest_ends(tenant, tool.name(), breaker.failures.get())?;
        let ends = ends.into_iter().map(|(_, has_failed, at)| (has_failed, at));
        Ok(breaker.readiness(ends, now))
    }

    /// The calls of the tenant's past runs as the policies saw them. Purged runs have none.
    ///
    /// # Errors
    /// If the identity may not read, or the store cannot be read.
    pub fn recorded_calls(&self, identity: &Identity) -> Result<RecordedCalls, ServiceError> {
        identity.require(Scope::Read)?;
        let store = self.store()?;
        let mut recorded = RecordedCalls::default();
        let mut runs = store.runs(&RunFilter {
            tenant: Some(identity.tenant().to_string()),
            ..RunFilter::default()
        })?;
        runs.reverse();
        for summary in runs.iter().filter(|run| run.purged.is_none()) {
            let Ok(run) = store.fold(&summary.run) else {
                recorded.unreadable_runs += 1;
                continue;
            };
            for tool in run.agent().tools() {
                let name = tool.name().to_string();
                recorded.tools.insert(name, Arc::clone(tool));
            }
            recorded.calls.extend(requests_of(summary, &run));
        }
        Ok(recorded)
    }

    /// The recorded calls of these tools that new policies decide differently: from what was recorded, or
    /// from other policies if `compares_policies` is set. `old` also stands in where nothing is recorded.
    ///
    /// # Errors
    /// If the identity may not read, or the configuration cannot be used.
    pub fn replay_policies(
        &self,
        identity: &Identity,
        (old, compares_policies): (&Policies, bool),
        new: &Policies,
        recorded: &RecordedCalls,
        tools: &[Arc<ToolSpecification>],
    ) -> Result<PolicyReplay, ServiceError> {
        identity.require(Scope::Read)?;
        let floor = self.project()?.configured.floor();
        let (old, new) = (old.clone().with_floor(floor), new.clone().with_floor(floor));
        let is_declared = |name: &str| tools.iter().any(|tool| tool.name().as_str() == name);
        let all = recorded.calls.iter();
        let calls: Vec<&RecordedCall> =
            all.filter(|call| is_declared(&call.request.tool)).collect();
        let differences = calls.iter().enumerate().filter_map(|(index, call)| {
            let request = &call.request;
            let recorded = call.decision.clone().filter(|_| !compares_policies);
            let before = recorded.unwrap_or_else(|| old.decide(request));
            let after = new.decide(request);
            Some(ReplayedCall {
                call: call.call.clone(),
                request: request.clone(),
                difference: Difference::between(index, &request.tool, before, after)?,
            })
        });
        Ok(PolicyReplay {
            differences: differences.collect(),
            compared: calls.len(),
            left_out: recorded.calls.len() - calls.len(),
        })
    }
}

/// The calls of a run as the policies saw them. Calls of sub-agents and questions to people are not calls
/// of tools.
fn requests_of(summary: &RunSummary, run: &Run) -> Vec<RecordedCall> {
    let tenant = NonEmptyText::new(summary.tenant.clone());
    let principal = Principal::new(summary.principal.clone());
    let (Ok(tenant), Ok(principal)) = (tenant, principal) else {
        return Vec::new();
    };
    let person = TenantPrincipal::new(tenant, principal);
    run.calls()
        .filter(|call| {
            run.kind(call.id())
                .is_some_and(|kind| kind != CallKind::SubAgent && !kind.is_answered_by_person())
        })
        .filter_map(|call| {
            let (_, decision) = run.call(call.id()).ok()?;
            Some(RecordedCall {
                call: call.id().clone(),
                request: run.policy_request(call.id(), &person).ok()?,
                decision: decision.and_then(windlass_core::gate::Decision::of_policies),
            })
        })
        .collect()
}

/// The error for an unknown tool. The request is invalid, because the caller names the tool in it.
fn no_such_tool(call: &ExplainedCall<'_>) -> ServiceError {
    let tools = call.file.tools().iter();
    let known: Vec<&str> = tools.map(|tool| tool.name().as_str()).collect();
    let message = unknown_name_message("tool", call.tool, &known, call.place);
    let (message, hint) = message.split_once("\nhint: ").unwrap_or((&message, ""));
    ServiceError::invalid("unknown_tool", message).with_hint(hint)
}

/// Parses and checks the arguments of a tool.
fn arguments(text: &str, tool: &ToolSpecification) -> Result<Map<String, Value>, ServiceError> {
    let arguments: Value = read_json(text).map_err(|error| {
        let message = format!("the arguments are not JSON: {error}");
        ServiceError::invalid("not_json", message).with_hint(format!(
            "`{}` takes {}",
            tool.name(),
            tool.signature()
        ))
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
            Err(ServiceError::invalid("arguments_do_not_fit", message)
                .with_hint(format!("it takes {}", tool.signature())))
        }
    }
}
