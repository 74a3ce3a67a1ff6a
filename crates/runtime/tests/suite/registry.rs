//! The operator's rules for tools, on a real database: limits, circuit breakers, permissions of sub-agents, and
//! rules that change during runs.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::approval::PersonDecision;
use windlass_core::gate::{Decision, Entitlement, Governance, Stage, ToolRule, Verdict};
use windlass_core::limits::Breaker;
use windlass_core::model::ModelAnswer;
use windlass_core::run::{Entry, Event, Run, RunEnd};
use windlass_model::{ModelClient, ScriptedModel};
use windlass_runtime::{
    Crew, CrewMember, Driver, Durable, InMemory, RateLimitPort as _, TurnRequest,
};
use windlass_spec::registry::{Permission, RateLimits, Window};
use windlass_spec::{
    CallRecord, CallState, ErrorCategory, NonEmptyText, RiskLevel, Timestamp, ToolAttributes,
};
use windlass_store::{Durability, ExecutionFilter};
use windlass_tools::{BindingMode, Tool, ToolError, ToolLibrary, bind};

use super::fixture::{RunFixture, finishing_model, paying_model};
use super::support::{call, finish, new_task};

fn look_call(what: &str) -> ModelAnswer {
    call("look", json!({ "what": what }))
}

fn looking_model(times: u32) -> ScriptedModel {
    let calls = (0..times).map(|time| look_call(&format!("thing {time}")));
    ScriptedModel::answers(calls.chain([finish("Looked.")]))
}

fn limits(window: Window, count: u32) -> RateLimits {
    RateLimits::none().with(window, NonZeroU32::new(count).unwrap())
}

fn permissions(texts: &[&str]) -> BTreeSet<Permission> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn decisions(run: &Run) -> Vec<&Decision> {
    let entries = run.turns().iter().flat_map(|turn| &turn.entries);
    entries
        .filter_map(|entry| match entry {
            Entry::Call { decision, .. } => decision.as_deref(),
            _ => None,
        })
        .collect()
}

fn stages(run: &Run) -> Vec<Stage> {
    decisions(run).iter().map(|one| one.stage()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_applies_across_runs_and_restarts() {
    let mut fixture = RunFixture::new();
    let rule = ToolRule {
        limits: limits(Window::PerHour, 3),
        ..ToolRule::default()
    };
    fixture.governance.tools.insert("look".to_owned(), rule);
    // Each driver has its own connection and shares no memory with the others.
    let first = fixture.driver(looking_model(2));
    let run = first.start(new_task("Look.")).await.unwrap();
    assert_eq!(stages(&run), [Stage::Passed; 2]);
    let second = fixture.driver(looking_model(2));
    let run = second.start(new_task("Look.")).await.unwrap();
    assert_eq!(stages(&run), [Stage::Passed, Stage::RateLimit]);
    let refused = decisions(&run)[1];
    assert!(refused.retry_at().is_some());
    assert!(
        refused.reason().contains("per_hour = 3"),
        "{}",
        refused.reason()
    );
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_are_limited_within_one_turn() {
    let mut fixture = RunFixture::new();
    let rule = ToolRule {
        limits: limits(Window::Concurrent, 2),
        ..ToolRule::default()
    };
    fixture.governance.tools.insert("look".to_owned(), rule);
    let mut many = look_call("a");
    for what in ["b", "c", "d"] {
        many.calls.extend(look_call(what).calls);
    }
    let model = ScriptedModel::answers([many, look_call("e"), finish("Looked.")]);
    let run = fixture.start(model, new_task("Look.")).await;
    let refused = stages(&run)
        .iter()
        .filter(|stage| **stage == Stage::RateLimit)
        .count();
    assert_eq!(refused, 2, "{:?}", stages(&run));
    assert_eq!(
        fixture.effects().len(),
        3,
        "calls that ended are no longer counted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_apply_to_runs_in_memory() {
    let fixture = RunFixture::new();
    let mut governance = Governance::default();
    let entitlement = Entitlement {
        limits: limits(Window::PerDay, 1),
        ..Entitlement::default()
    };
    governance.principals.insert("*".to_owned(), entitlement);
    let crew = Crew::new(fixture.member("clerk", looking_model(2))).governed_by(governance);
    let driver = Driver::new(crew, Arc::new(InMemory::default()));
    let run = driver.start(new_task("Look.")).await.unwrap();
    assert_eq!(stages(&run), [Stage::Passed, Stage::RateLimit]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_in_memory_apply_to_all_drivers_that_share_it() {
    let fixture = RunFixture::new();
    let memory = Arc::new(InMemory::default());
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut governance = Governance::default();
        let entitlement = Entitlement {
            limits: limits(Window::PerDay, 1),
            ..Entitlement::default()
        };
        governance.principals.insert("*".to_owned(), entitlement);
        let crew = Crew::new(fixture.member("clerk", looking_model(1))).governed_by(governance);
        let driver = Driver::new(crew, Arc::clone(&memory) as Arc<dyn Durable>);
        let run = driver.start(new_task("Look.")).await.unwrap();
        seen.extend(stages(&run));
    }
    assert_eq!(seen, [Stage::Passed, Stage::RateLimit]);
}

#[tokio::test]
async fn a_turn_in_memory_is_taken_once_until_it_ends() {
    let memory = InMemory::default();
    let at = Timestamp::from_microseconds;
    let take = |now, until| {
        memory.take_turn(TurnRequest {
            tenant: "acme",
            key: "trial:shake",
            now: at(now),
            until: at(until),
        })
    };
    assert_eq!(take(10, 20).await.unwrap(), None);
    assert_eq!(take(12, 22).await.unwrap(), Some(at(20)));
    assert_eq!(take(20, 30).await.unwrap(), None);
}

/// An agent that calls a tool this many times.
pub(super) fn member_calling<F>(
    calls: u32,
    handler: impl Fn(Value) -> F + Send + Sync + 'static,
) -> CrewMember
where
    F: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    let file = r#"
        [tester:Agent {instruction: "Try it.", model: "OpenAI/gpt-4o-mini"} |
          [shake:Tool {description: "Works or does not", risk: reversible} | (number::Int)==>(::Text)]]
    "#;
    let agent = windlass_spec::read(file).file.unwrap().agents()[0].clone();
    let tool = Tool::builder("shake")
        .description("Works or does not")
        .signature("(number: Int) --> IO Text")
        .handler(handler);
    let library = ToolLibrary::new("shaky").with(tool.build().unwrap());
    let shakes = (0..calls).map(|number| call("shake", json!({ "number": number })));
    let model = ScriptedModel::answers(shakes.chain([finish("Tried.")]));
    CrewMember {
        tools: bind(&agent, &library, BindingMode::Exact).unwrap(),
        agent,
        model: Arc::new(model),
    }
}

/// An agent with a tool that fails until it is fixed.
fn member_with_failing_tool(fixed: &Arc<AtomicBool>, calls: u32) -> CrewMember {
    let fixed = Arc::clone(fixed);
    member_calling(calls, move |_| {
        let is_fixed = fixed.load(Ordering::SeqCst);
        async move {
            match is_fixed {
                true => Ok(json!("fine")),
                false => Err(ToolError::of(ErrorCategory::Unavailable, "it is down")),
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_keeps_failing_is_not_called_until_the_cooldown_is_over() {
    let mut fixture = RunFixture::new();
    fixture.governance.breaker = Breaker {
        failures: NonZeroU32::new(3).unwrap(),
        cooldown: Duration::from_secs(3600),
    };
    let fixed = Arc::new(AtomicBool::new(false));
    let start = async |calls: u32| {
        let driver = fixture.driver_with(Crew::new(member_with_failing_tool(&fixed, calls)));
        driver.start(new_task("Try it.")).await.unwrap()
    };
    let run = start(5).await;
    use Stage::{Health, Passed};
    assert_eq!(stages(&run), [Passed, Passed, Passed, Health, Health]);
    // Another process does not call it either.
    assert_eq!(stages(&start(1).await), [Health]);
    fixture.advance_clock(Duration::from_secs(3601));
    // One more failure is enough.
    assert_eq!(stages(&start(2).await), [Passed, Health]);
    fixture.advance_clock(Duration::from_secs(3601));
    fixed.store(true, Ordering::SeqCst);
    assert_eq!(stages(&start(3).await), [Passed; 3]);
    let statistics = fixture.store().tool_statistics(&ExecutionFilter::default());
    let of = &statistics.unwrap()[0];
    assert_eq!((of.success_count, of.failure_count), (3, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_is_denied_permissions_that_its_parent_lacks() {
    let mut fixture = RunFixture::new();
    let rule = ToolRule {
        demands: permissions(&["files:read"]),
        ..ToolRule::default()
    };
    fixture.governance.tools.insert("look".to_owned(), rule);
    let ann = Entitlement {
        permissions: permissions(&["files:read"]),
        ..Entitlement::default()
    };
    fixture.governance.principals.insert("ann".to_owned(), ann);
    let delegating_model = || {
        ScriptedModel::answers([
            call("clerk", json!({"task": "Look it up."})),
            finish("Handed over."),
        ])
    };
    let crew = || {
        Crew::new(fixture.member("chief", delegating_model()))
            .with(fixture.member("clerk", looking_model(1)))
    };
    let run = fixture.driver_with(crew()).start(new_task("Look.")).await;
    assert_eq!(run.unwrap().end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.take_effects().len(), 1, "both hold it");
    // The clerk may hold it, but its parent may not.
    let mut fixture = fixture;
    let agents = &mut fixture.governance.agents;
    agents.insert("chief".to_owned(), BTreeSet::new());
    let crew = Crew::new(fixture.member("chief", delegating_model()))
        .with(fixture.member("clerk", looking_model(1)));
    let run = fixture
        .driver_with(crew)
        .start(new_task("Look."))
        .await
        .unwrap();
    assert!(fixture.effects().is_empty());
    let child = run.child_run(run.calls().next().unwrap()).unwrap();
    let child = fixture.store().fold(&child).unwrap();
    assert_eq!(stages(&child), [Stage::Permission]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waited_is_decided_by_the_rules_at_its_start() {
    let fixture = RunFixture::new();
    let crew = Crew::new(fixture.member("clerk", paying_model()));
    let crew = crew.governed_by(fixture.governance.clone());
    let stored = windlass_runtime::Stored::new(fixture.store(), super::support::identity("ann"));
    let driver = Driver::new(crew.clone(), Arc::new(stored));
    let run = driver.start(new_task("Pay Bob.")).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    fixture.decide("bob", PersonDecision::Approve);
    let mut changed = Governance::default();
    let rule = ToolRule {
        switched_off: Some("windlass.toml:3".to_owned()),
        ..ToolRule::default()
    };
    changed.tools.insert("pay".to_owned(), rule);
    crew.govern(changed).unwrap();
    let resumed = tokio::time::timeout(Duration::from_secs(20), driver.resume(run.id())).await;
    let run = resumed.unwrap().unwrap();
    let record = run.calls().next().unwrap();
    assert_eq!(record.state(), CallState::Error);
    let failure = record.outcome().unwrap().unwrap_err();
    let message = &failure.operator_message;
    assert!(
        message.contains("switched off (windlass.toml:3)"),
        "{message}"
    );
    // The model does not learn where the operator set it.
    assert_eq!(
        failure.model_message,
        "the tool `pay` is switched off; continue without it"
    );
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_ends_under_the_rules_it_started_with() {
    let crew: Arc<OnceLock<Crew>> = Arc::default();
    let governed = Arc::clone(&crew);
    // While it runs, it is switched off and its timeout becomes too short.
    let member = member_calling(2, move |_| {
        let mut changed = Governance::default();
        let rule = ToolRule {
            switched_off: Some("while it ran".to_owned()),
            timeout: Some(1.try_into().unwrap()),
            ..ToolRule::default()
        };
        changed.tools.insert("shake".to_owned(), rule);
        governed.get().unwrap().govern(changed).unwrap();
        async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            Ok(json!("fine"))
        }
    });
    let crew = crew.get_or_init(|| Crew::new(member));
    let driver = Driver::new(crew.clone(), Arc::new(InMemory::default()));
    let run = driver.start(new_task("Try it.")).await.unwrap();
    assert_eq!(stages(&run), [Stage::Passed, Stage::Enabled]);
    let states: Vec<CallState> = run.calls().map(CallRecord::state).collect();
    assert_eq!(states, [CallState::Success, CallState::Error]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_call_is_not_repeated_if_the_rules_now_forbid_it() {
    let fixture = RunFixture::new();
    let kept = InMemory::default();
    let model = || ScriptedModel::answers([look_call("thing"), finish("Looked.")]);
    let crew = |model, governance: Governance| {
        Crew::new(fixture.member("clerk", model)).governed_by(governance)
    };
    let driver = Driver::new(crew(model(), Governance::default()), Arc::new(kept.clone()));
    let run = driver.start(new_task("Look.")).await.unwrap();
    assert_eq!(fixture.take_effects().len(), 1);
    // As if the process had died before the end of the call was recorded.
    let events = kept.events(run.id());
    let started = |event: &Event| matches!(event, Event::CallStarted { .. });
    let until = events.iter().position(started).unwrap();
    for switched_off in [None, Some("since then".to_owned())] {
        let is_off = switched_off.is_some();
        let mut governance = Governance::default();
        let rule = ToolRule {
            switched_off,
            ..ToolRule::default()
        };
        governance.tools.insert("look".to_owned(), rule);
        let other = InMemory::default();
        let (_, mut journal) = other.start(None, events[0].clone()).await.unwrap();
        for event in &events[1..=until] {
            let event = journal.redact(event.clone()).unwrap();
            journal.append(&event, Durability::Relaxed).await.unwrap();
        }
        let finishing = ScriptedModel::answers([finish("Looked.")]);
        let driver = Driver::new(crew(finishing, governance), Arc::new(other));
        let resumed = driver.resume(run.id()).await.unwrap();
        let state = resumed.calls().next().unwrap().state();
        match is_off {
            true => assert_eq!((state, fixture.take_effects().len()), (CallState::Error, 0)),
            false => assert_eq!(
                (state, fixture.take_effects().len()),
                (CallState::Success, 1)
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_tool_is_tried_again_by_one_call_at_a_time() {
    let mut fixture = RunFixture::new();
    fixture.governance.breaker = Breaker {
        failures: NonZeroU32::new(2).unwrap(),
        cooldown: Duration::from_secs(3600),
    };
    let broken = Arc::new(AtomicBool::new(false));
    let driver = fixture.driver_with(Crew::new(member_with_failing_tool(&broken, 2)));
    driver.start(new_task("Try it.")).await.unwrap();
    fixture.advance_clock(Duration::from_secs(3601));
    // Each has its own connection, as other processes have.
    let tries = (0..6).map(|_| {
        let driver = fixture.driver_with(Crew::new(member_with_failing_tool(&broken, 1)));
        tokio::spawn(async move { driver.start(new_task("Try it.")).await.unwrap() })
    });
    let tries: Vec<_> = tries.collect();
    let mut passed = 0;
    for tried in tries {
        let run = tried.await.unwrap();
        passed += usize::from(stages(&run) == [Stage::Passed]);
    }
    assert_eq!(passed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_refused_by_the_breaker_uses_no_rate_limit() {
    let mut fixture = RunFixture::new();
    fixture.governance.breaker = Breaker {
        failures: NonZeroU32::new(2).unwrap(),
        cooldown: Duration::from_secs(3600),
    };
    let rule = ToolRule {
        limits: limits(Window::PerDay, 10),
        ..ToolRule::default()
    };
    fixture.governance.tools.insert("shake".to_owned(), rule);
    let fixed = Arc::new(AtomicBool::new(false));
    let driver = fixture.driver_with(Crew::new(member_with_failing_tool(&fixed, 2)));
    driver.start(new_task("Try it.")).await.unwrap();
    fixture.advance_clock(Duration::from_secs(3601));
    // Each of the two calls was made three times. One of the four calls in the turn is the trial. It fails three
    // times too, and one call of the daily limit is left.
    let mut many = call("shake", json!({"number": 10}));
    for number in 11..14 {
        many.calls
            .extend(call("shake", json!({ "number": number })).calls);
    }
    let member = CrewMember {
        model: Arc::new(ScriptedModel::answers([many, finish("Tried.")])),
        ..member_with_failing_tool(&fixed, 0)
    };
    let driver = fixture.driver_with(Crew::new(member));
    let run = driver.start(new_task("Try it.")).await.unwrap();
    let passed = stages(&run)
        .iter()
        .filter(|stage| **stage == Stage::Passed)
        .count();
    assert_eq!(passed, 1, "{:?}", stages(&run));
    fixture.advance_clock(Duration::from_secs(3601));
    fixed.store(true, Ordering::SeqCst);
    let driver = fixture.driver_with(Crew::new(member_with_failing_tool(&fixed, 2)));
    let run = driver.start(new_task("Try it.")).await.unwrap();
    assert_eq!(stages(&run), [Stage::Passed, Stage::RateLimit]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stricter_attributes_of_an_implementation_override_the_declaration() {
    let file = r#"
        [tester:Agent {instruction: "Try it.", model: "OpenAI/gpt-4o-mini"} |
          [shake:Tool {description: "Works or does not", risk: reversible, open_world: false} | (number::Int)==>(::Text)]]
    "#;
    let agent = windlass_spec::read(file).file.unwrap().agents()[0].clone();
    let tool = Tool::builder("shake")
        .description("Works or does not")
        .signature("(number: Int) --> IO Text")
        .attributes(ToolAttributes {
            risk: Some(RiskLevel::Irreversible),
            category: Some(NonEmptyText::new("file_tools").unwrap()),
            open_world: Some(true),
            sensitive: Some(true),
            ..ToolAttributes::default()
        })
        .handler(|_| async { Ok(json!("fine")) });
    let library = ToolLibrary::new("careful").with(tool.build().unwrap());
    let model: Arc<dyn ModelClient> = Arc::new(ScriptedModel::answers([call(
        "shake",
        json!({"number": 1}),
    )]));
    let agents = std::slice::from_ref(&agent);
    let crew = Crew::assemble(agents, &agent, &library, BindingMode::Exact, &|_| {
        Ok(Arc::clone(&model))
    });
    let driver = Driver::new(crew.unwrap(), Arc::new(InMemory::default()));
    let run = driver.start(new_task("Try it.")).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    let declared = run.agent().tool("shake").unwrap().attributes().clone();
    assert_eq!(declared.risk, Some(RiskLevel::Irreversible));
    assert_eq!(declared.category.unwrap().as_str(), "file_tools");
    assert_eq!(
        (declared.open_world, declared.sensitive),
        (Some(true), Some(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_do_not_fit_leave_the_previous_ones_active() {
    let fixture = RunFixture::new();
    let crew = Crew::new(fixture.member("clerk", finishing_model()));
    let name = crew.lead().agent.name().clone();
    let before = crew.rules(&name).unwrap();
    let broken = Governance {
        policies: "permit (principal, action == Action::\"no_such_tool\", resource);".to_owned(),
        ..Governance::default()
    };
    assert!(crew.govern(broken).is_err());
    assert!(Arc::ptr_eq(&before, &crew.rules(&name).unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_rule_changes_under_load_cause_no_wrong_decision() {
    let fixture = RunFixture::new();
    let answer = AtomicU32::new(0);
    let model = ScriptedModel::function(move |_| {
        let number = answer.fetch_add(1, Ordering::SeqCst);
        Ok(look_call(&format!("thing {number}")))
    });
    let crew = Crew::new(fixture.member("clerk", model));
    let governance_with = |is_on: bool, number: u32| {
        let mut governance = Governance {
            configuration: Some(format!("{}{number}", if is_on { "on" } else { "off" })),
            ..Governance::default()
        };
        let rule = ToolRule {
            switched_off: (!is_on).then(|| format!("change {number}")),
            ..ToolRule::default()
        };
        governance.tools.insert("look".to_owned(), rule);
        governance
    };
    let crew = crew.governed_by(governance_with(true, 0));
    let driver = Driver::new(crew.clone(), Arc::new(InMemory::default()));
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let (driver, over) = (driver.clone(), Arc::clone(&over));
        tasks.push(tokio::spawn(async move {
            let mut runs = Vec::new();
            while !over.load(Ordering::SeqCst) {
                runs.push(driver.start(new_task("Look.")).await.unwrap());
            }
            runs
        }));
    }
    let changing = std::thread::spawn(move || {
        for number in 1..=1000 {
            crew.govern(governance_with(number % 2 == 0, number))
                .unwrap();
        }
        over.store(true, Ordering::SeqCst);
    });
    let (mut on, mut off) = (0, 0);
    for task in tasks {
        for run in task.await.unwrap() {
            for decision in decisions(&run) {
                let configuration = decision.configuration().unwrap();
                match decision.verdict() {
                    Verdict::Allow => {
                        assert!(configuration.starts_with("on"), "{decision:?}");
                        on += 1;
                    }
                    Verdict::Deny => {
                        let number = configuration.strip_prefix("off").expect("switched off");
                        let why = decision.reason();
                        assert!(why.contains(&format!("(change {number})")), "{decision:?}");
                        off += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    changing.join().unwrap();
    assert!(on > 0 && off > 0, "{on} allowed, {off} denied");
}
