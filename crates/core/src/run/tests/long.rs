//! Long runs: the cost of an event does not grow with the number of events before it, and turns that the model
//! is not shown any more can be dropped without a change of what the run does.

use std::time::Duration;

use super::*;

/// The largest allowed ratio of the time per turn in a run of [`MANY`] turns to one of [`FEW`]. It is near 1, and
/// 9 if each turn looks at all turns before it.
const MAX_RATIO: f64 = 3.0;
const FEW: u32 = 250;
const MANY: u32 = 2_000;

/// The CPU time of this thread. Wall-clock time would include other work on a busy machine.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn settings(turns: u32) -> Settings {
    Settings {
        max_iterations: turns,
        max_calls: turns,
        max_messages: 20,
        ..Settings::default()
    }
}

/// Makes turns that each read a page of untrusted content, with what a driver asks about them besides the
/// decision itself. Returns the seconds per turn.
fn read_pages(turns: u32) -> f64 {
    let mut harness = RunHarness::start("Read the book.", settings(turns + 1));
    let ann = identity("ann");
    let started = cpu_time();
    for page in 0..turns {
        assert!(matches!(harness.run.next(), Next::CallModel(_)));
        assert!(harness.run.found_tools().is_empty());
        let query = format!("what follows the words on page {page}");
        harness.answer_with(vec![call("search", json!({"query": query}))]);
        let Next::Gate(calls) = harness.run.next() else {
            panic!("a call waits at the gate");
        };
        let call = calls[0].clone();
        let seen = harness.run.policy_request(&call, &ann).unwrap();
        assert_eq!(seen.session.calls, page);
        assert_eq!(harness.run.calls_used(), page + 1);
        let decision = json!({"verdict": "allow", "stage": "policy"});
        let decision = serde_json::from_value(decision).unwrap();
        let at = harness.now();
        harness.record(Event::Decided {
            call: call.clone(),
            decision,
            at,
        });
        let variant = None;
        harness.record(Event::CallStarted {
            call: call.clone(),
            variant,
            at,
        });
        let text = format!("the words of page {page} ").repeat(8);
        let mut end = ended(&call, CallEnd::Success(json!(text)), at);
        if let Event::CallEnded { tainted, .. } = &mut end {
            *tainted = true;
        }
        harness.record(end);
        harness.run.release_turns();
    }
    (cpu_time() - started).as_secs_f64() / f64::from(turns)
}

#[test]
fn the_cost_of_a_turn_does_not_grow_with_the_run() {
    read_pages(10);
    let (few, many) = (read_pages(FEW), read_pages(MANY));
    assert!(many < few * MAX_RATIO, "{few} s, then {many} s for a turn");
}

#[test]
fn a_resumed_run_keeps_only_the_turns_that_are_shown() {
    let mut harness = RunHarness::start("Read the book.", settings(301));
    for page in 0..300 {
        let query = format!("page {page}");
        harness.answer_with(vec![call("search", json!({"query": query}))]);
        harness.run_open_calls(succeed);
    }
    let mut resumed = FoldedRun::new(KeptTurns::Shown);
    for event in &harness.journal {
        resumed.apply(event).unwrap();
    }
    let resumed = resumed.finish().unwrap();
    assert_eq!(resumed.next(), harness.run.next());
    assert_eq!(
        (resumed.turn_count(), harness.run.turns().len()),
        (300, 300)
    );
    assert!(resumed.turns().len() < 40, "{}", resumed.turns().len());
    assert!(resumed.has_released_turns() && !harness.run.has_released_turns());
}

#[test]
fn an_approver_sees_why_a_call_is_made_however_many_turns_were_dropped() {
    let mut harness = RunHarness::start("Read the book.", settings(301));
    for page in 0..300 {
        let query = format!("page {page}");
        harness.answer_with(vec![call("search", json!({"query": query}))]);
        harness.run_open_calls(succeed);
        harness.run.release_turns();
    }
    assert!(harness.run.has_released_turns());
    harness.answer(ModelAnswer {
        thought: Some("The last page asks for a letter.".to_owned()),
        calls: vec![call("send", json!({"to": "Ann"}))],
        ..ModelAnswer::default()
    });
    while let Next::Gate(calls) = harness.run.next() {
        calls.iter().for_each(|call| harness.pass_gate(call));
    }
    let question = harness.run.questions().next().unwrap();
    let message = question.request().message.as_ref();
    assert_eq!(
        message.map(NonEmptyText::as_str),
        Some("The agent `helper`: The last page asks for a letter.")
    );
}

#[test]
fn requests_begin_with_the_same_messages_until_turns_are_left_out() {
    let mut harness = RunHarness::start("Read the book.", settings(200));
    let mut before: Vec<Arc<ChatMessage>> = Vec::new();
    let mut cuts = 0;
    for page in 0..100 {
        let query = format!("page {page}");
        harness.answer_with(vec![call("search", json!({"query": query}))]);
        harness.run_open_calls(succeed);
        let Next::CallModel(request) = harness.run.next() else {
            panic!("the model is asked");
        };
        let shared = before.iter().zip(&request.messages);
        let shared = shared.take_while(|(old, new)| Arc::ptr_eq(old, new));
        cuts += usize::from(shared.count() < before.len());
        before = request.messages;
    }
    assert!(cuts < 40, "{cuts} of 100 requests were made anew");
}

/// What the model asks for in a turn of the property test.
fn requested() -> impl Strategy<Value = Vec<RequestedCall>> {
    let number = 0..4_u8;
    let one = (number, 0..5_u8).prop_map(|(number, kind)| match kind {
        0 => call("search", json!({"query": format!("page {number}")})),
        1 => call("send", json!({"to": format!("person {number}")})),
        2 => call("note", json!({"text": format!("note {number}")})),
        3 => call(&format!("unknown{number}"), json!({})),
        _ => text_call("search", "{\"query\": "),
    });
    prop::collection::vec(one, 1..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn dropping_turns_changes_nothing_that_a_run_does(
        turns in prop::collection::vec((requested(), 0..4_u8), 1..30),
    ) {
        let settings = Settings {
            max_messages: 8,
            max_mistaken_turns: 100,
            ..settings(100)
        };
        let mut harness = RunHarness::start("Write to person 1.", settings);
        for (calls, outcome) in turns {
            harness.answer_with(calls);
            harness.run_open_calls_deciding(
                |_, arguments| match outcome {
                    0 => CallEnd::Error(Failure::new(ErrorCategory::Timeout, Effect::None, "late")),
                    _ => CallEnd::Success(json!(format!("result for {arguments}"))),
                },
                |_| match outcome {
                    1 => PersonDecision::Reject { message: None },
                    _ => PersonDecision::Approve,
                },
            );
        }
        let (mut whole, mut resumed) = (FoldedRun::new(KeptTurns::All), FoldedRun::new(KeptTurns::Shown));
        let ann = identity("ann");
        for event in &harness.journal {
            whole.apply(event).unwrap();
            resumed.apply(event).unwrap();
            let (whole, resumed) = (whole.run.as_ref().unwrap(), resumed.run.as_ref().unwrap());
            let next = whole.next();
            prop_assert_eq!(&resumed.next(), &next);
            prop_assert_eq!(resumed.calls_used(), whole.calls_used());
            prop_assert_eq!(resumed.mistakes(), whole.mistakes());
            prop_assert!(resumed.missing_tool_entries().eq(whole.missing_tool_entries()));
            prop_assert!(resumed.questions().eq(whole.questions()));
            if let Next::Gate(calls) | Next::RunCalls(calls) = next {
                for call in &calls {
                    let seen = whole.policy_request(call, &ann).unwrap();
                    prop_assert_eq!(resumed.policy_request(call, &ann).unwrap(), seen);
                }
            }
        }
    }
}
