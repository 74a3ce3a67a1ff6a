//! Which calls are answered with the result of the same call before, and which calls are tried again.

use super::*;

const TOOLS: &str = r#"
[helper:Agent {instruction: "Help people.", model: "OpenAI/gpt-4o-mini"} |
  [search:Tool {description: "Searches for something", risk: reversible} | (query::Text)==>(::Text)],
  [news:Tool {description: "Finds today's news", risk: reversible, open_world: true} | (query::Text)==>(::Text)],
  [get_current_time:Tool {description: "Tells the time of day", risk: reversible} | (zone::Text)==>(::Text)],
  [poll:Tool {description: "Reads the state of a job", risk: reversible, cacheable: false} | (job::Text)==>(::Text)],
  [add_note:Tool {description: "Adds a note, which can be removed", risk: reversible} | (text::Text)==>(::Text)],
  [move_file:Tool {description: "Moves a file", risk: reversible_with_delay, idempotent: true} | (to::Text)==>(::Text)],
  [note:Tool {description: "Writes a note for later", risk: reversible_with_delay} | (text::Text)==>(::Text)],
  [send:Tool {description: "Sends a message to someone", risk: irreversible} | (to::Text)==>(::Text)]]
"#;

fn start() -> RunHarness {
    let agent = windlass_spec::read(TOOLS).file.unwrap().agents()[0].clone();
    let mut harness = RunHarness::start("x", Settings::default());
    let Event::Started {
        agent: declared, ..
    } = &mut harness.journal[0]
    else {
        panic!()
    };
    **declared = agent.clone();
    harness.run = Run::fold(&harness.journal).unwrap();
    harness.rules = Rules::new(&Governance::default(), &agent, &[]).unwrap();
    harness
}

/// Makes these calls, each in a turn of its own, and returns the tools that ran.
fn ran(harness: &mut RunHarness, calls: &[(&str, Value)]) -> Vec<String> {
    let ran = std::cell::RefCell::new(Vec::new());
    for (tool, arguments) in calls {
        harness.answer_with(vec![call(tool, arguments.clone())]);
        harness.run_open_calls(|tool, arguments| {
            ran.borrow_mut().push(tool.to_owned());
            succeed(tool, arguments)
        });
    }
    // Another process reads the same.
    assert_eq!(Run::fold(&harness.journal).unwrap(), harness.run);
    ran.into_inner()
}

fn query() -> (&'static str, Value) {
    ("search", json!({"query": "a"}))
}

#[test]
fn an_identical_reversible_call_is_answered_with_the_known_result() {
    let mut harness = start();
    assert_eq!(ran(&mut harness, &[query(), query()]), ["search"]);
    let observation = harness.last_observation();
    assert!(observation.starts_with("result for"), "{observation}");
    assert!(harness.run.mistakes().is_empty());
    let states: Vec<_> = harness.run.calls().map(CallRecord::state).collect();
    assert_eq!(states, [CallState::Success; 2]);
}

#[test]
fn identical_reversible_calls_of_one_turn_run_once() {
    let mut harness = start();
    let (tool, arguments) = query();
    harness.answer_with(vec![call(tool, arguments.clone()), call(tool, arguments)]);
    let count = std::cell::Cell::new(0);
    harness.run_open_calls(|tool, arguments| {
        count.set(count.get() + 1);
        succeed(tool, arguments)
    });
    assert_eq!(count.get(), 1);
    assert!(harness.run.mistakes().is_empty());
    assert_eq!(harness.run.response().tool_calls().len(), 2);
}

#[test]
fn identical_calls_with_an_effect_in_one_turn_run_once() {
    let mut harness = start();
    let note = || call("note", json!({"text": "a"}));
    harness.answer_with(vec![note(), note()]);
    let count = std::cell::Cell::new(0);
    harness.run_open_calls(|tool, arguments| {
        count.set(count.get() + 1);
        succeed(tool, arguments)
    });
    assert_eq!(count.get(), 1);
}

#[test]
fn any_call_that_may_change_something_empties_the_cache() {
    for (tool, arguments) in [
        ("note", json!({"text": "b"})),
        ("send", json!({"to": "Ann"})),
        ("add_note", json!({"text": "b"})),
    ] {
        let mut harness = start();
        let ran = ran(
            &mut harness,
            &[query(), (tool, arguments), query(), query()],
        );
        assert_eq!(ran, ["search", tool, "search"]);
    }
}

#[test]
fn a_call_that_failed_may_succeed_after_a_change() {
    let mut harness = start();
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    harness.run_open_calls(|_, _| {
        CallEnd::Error(Failure::new(ErrorCategory::NotFound, Effect::None, "none"))
    });
    assert!(ran(&mut harness, &[query()]).is_empty(), "nothing changed");
    let note = ("note", json!({"text": "b"}));
    assert_eq!(ran(&mut harness, &[note, query()]), ["note", "search"]);
}

#[test]
fn clocks_open_world_tools_and_tools_that_say_so_are_never_cached() {
    for (tool, arguments) in [
        ("get_current_time", json!({"zone": "UTC"})),
        ("news", json!({"query": "a"})),
        ("poll", json!({"job": "1"})),
    ] {
        let mut harness = start();
        let twice = [(tool, arguments.clone()), (tool, arguments)];
        assert_eq!(ran(&mut harness, &twice), [tool, tool]);
        assert!(harness.run.mistakes().is_empty(), "{tool}");
    }
}

#[test]
fn a_resumed_run_asks_again() {
    let mut harness = start();
    ran(&mut harness, &[query()]);
    let at = harness.now();
    let accepted = BTreeMap::new();
    harness.record(Event::Resumed { accepted, at });
    assert_eq!(ran(&mut harness, &[query()]), ["search"]);
}

#[test]
fn a_model_that_only_repeats_itself_is_stopped() {
    let mut harness = start();
    ran(&mut harness, &[query(), query(), query(), query()]);
    assert!(matches!(harness.end(), RunEnd::Failed { .. }));
}

#[test]
fn runs_from_before_refuse_a_repeated_call() {
    let mut settings = serde_json::to_value(Settings::default()).unwrap();
    settings.as_object_mut().unwrap().remove("reuse_results");
    let settings = serde_json::from_value(settings).unwrap();
    let mut harness = RunHarness::start("x", settings);
    assert_eq!(ran(&mut harness, &[query(), query()]), ["search"]);
    assert_eq!(harness.run.mistakes()[&MistakeKind::Repeated], 1);
}

#[test]
fn a_result_that_is_out_of_date_answers_no_call() {
    let mut harness = start();
    ran(&mut harness, &[query()]);
    let of = harness.run.calls().next().unwrap().id().clone();
    harness.answer_with(vec![call("search", json!({"query": "b"}))]);
    let Next::Gate(calls) = harness.run.next() else {
        panic!()
    };
    harness.pass_gate(&calls[0]);
    let call = calls[0].clone();
    let (wanted, at) = (FoldError::NotAllowed(call.clone()), harness.now());
    let refused = harness.run.apply(&Event::Reused { call, of, at });
    assert_eq!(refused, Err(wanted));
}

/// How often a call is made that always fails like that.
fn attempts(tool: &str, arguments: Value, failure: Failure) -> u32 {
    let mut harness = start();
    harness.answer_with(vec![call(tool, arguments)]);
    loop {
        match harness.run.next() {
            Next::Gate(calls) => calls.iter().for_each(|call| harness.pass_gate(call)),
            Next::Wait(waiting) if waiting.for_person => {
                let mut question = harness.run.questions().next().unwrap().clone();
                harness.settle(&mut question, "bob", PersonDecision::Approve);
            }
            Next::Wait(waiting) => harness.record(Event::TimePassed { at: waiting.until }),
            Next::RunCalls(calls) => {
                let call = calls[0].clone();
                let (at, variant) = (harness.now(), None);
                harness.record(Event::CallStarted {
                    call: call.clone(),
                    variant,
                    at,
                });
                drop(harness.run.permit(&call).unwrap());
                let mut attempts = 1;
                while let Some(delay) = harness.run.retry_delay(&call, &failure) {
                    assert!(!delay.is_zero());
                    let at = harness.now();
                    harness.record(Event::CallRetried {
                        call: call.clone(),
                        failure: failure.clone(),
                        until: at,
                        at,
                    });
                    drop(harness.run.permit(&call).unwrap());
                    attempts += 1;
                }
                let at = harness.now();
                harness.record(ended(&call, CallEnd::Error(failure), at));
                if attempts > 1 {
                    let observation = harness.last_observation();
                    assert!(observation.contains("tried 3 times"), "{observation}");
                }
                return attempts;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn failed_calls_are_tried_again_by_risk() {
    let down = || {
        let mut failure = Failure::new(ErrorCategory::Unavailable, Effect::None, "down");
        failure.retryable = true;
        failure
    };
    let attempts_of = |tool, arguments| attempts(tool, arguments, down());
    assert_eq!(attempts_of("search", json!({"query": "a"})), 3);
    assert_eq!(attempts_of("move_file", json!({"to": "a"})), 3);
    assert_eq!(attempts_of("note", json!({"text": "a"})), 1);
    assert_eq!(attempts_of("send", json!({"to": "Ann"})), 1);
    // A permanent error, and a server that wants a longer pause than a run waits.
    let permanent = Failure::new(ErrorCategory::NotFound, Effect::None, "none");
    assert_eq!(attempts("search", json!({"query": "a"}), permanent), 1);
    let much_later = Failure {
        retry_after_seconds: Some(3600),
        ..down()
    };
    assert_eq!(attempts("search", json!({"query": "a"}), much_later), 1);
}

#[test]
fn the_pause_before_a_retry_grows_and_is_at_least_what_the_service_asks_for() {
    let mut harness = start();
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    let Next::Gate(calls) = harness.run.next() else {
        panic!()
    };
    let call = calls[0].clone();
    harness.pass_gate(&call);
    let (at, variant) = (harness.now(), None);
    harness.record(Event::CallStarted {
        call: call.clone(),
        variant,
        at,
    });
    let failure = Failure::new(ErrorCategory::RateLimited, Effect::None, "slow down");
    let first = harness.run.retry_delay(&call, &failure).unwrap();
    let asked = Failure {
        retry_after_seconds: Some(7),
        ..failure.clone()
    };
    let delay = harness.run.retry_delay(&call, &asked).unwrap();
    assert_eq!(delay.as_secs(), 7);
    let at = harness.now();
    harness.record(Event::CallRetried {
        call: call.clone(),
        failure: failure.clone(),
        until: at,
        at,
    });
    assert_eq!(harness.run.retry_delay(&call, &failure), Some(first * 2));
}

#[test]
fn a_call_that_may_not_be_repeated_refuses_a_retry() {
    let mut harness = start();
    harness.answer_with(vec![call("note", json!({"text": "a"}))]);
    loop {
        match harness.run.next() {
            Next::Gate(calls) => calls.iter().for_each(|call| harness.pass_gate(call)),
            Next::Wait(waiting) => harness.record(Event::TimePassed { at: waiting.until }),
            Next::RunCalls(calls) => {
                let call = calls[0].clone();
                let (at, variant) = (harness.now(), None);
                harness.record(Event::CallStarted {
                    call: call.clone(),
                    variant,
                    at,
                });
                let retried = Event::CallRetried {
                    call: call.clone(),
                    failure: Failure::new(ErrorCategory::Unavailable, Effect::None, "down"),
                    until: at,
                    at,
                };
                let refused = harness.run.apply(&retried);
                return assert_eq!(refused, Err(FoldError::NotAllowed(call)));
            }
            other => panic!("{other:?}"),
        }
    }
}
