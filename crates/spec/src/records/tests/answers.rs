//! Outputs of tasks, answers of runs, and reports of gaps.

use std::time::Duration;

use serde_json::{Value, json};

use super::{at, denied, made, read_error, text, tool, turn, with, without};
use crate::records::{
    AgentReply, AgentResponse, CallRecord, CallState, Confidence, GapMoment, MissingCapability,
    NearestTool, OutputError, ReasoningStep, TaskOutput, ToolGapReport,
};

fn called(iteration: u32, calls: &[CallRecord]) -> ReasoningStep {
    let thought = text("I should look it up");
    ReasoningStep::call_tool(turn(iteration), thought, calls, at(0), Duration::ZERO).unwrap()
}

fn finished(iteration: u32) -> ReasoningStep {
    let thought = text("Paris it is");
    ReasoningStep::finish(
        turn(iteration),
        thought,
        text("Paris"),
        at(0),
        Duration::ZERO,
    )
}

fn trace() -> Vec<ReasoningStep> {
    let calls = [denied("r:1:0"), made("r:1:1", CallState::Success)];
    vec![called(1, &calls), finished(2)]
}

fn output() -> TaskOutput {
    TaskOutput::finished(text("t1"), text("Paris"), Confidence::FULL, trace()).unwrap()
}

fn written() -> Value {
    serde_json::to_value(output()).unwrap()
}

#[test]
fn a_task_output_has_the_documented_keys() {
    let written = written();
    let keys: Vec<_> = written.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "task_id",
            "answer",
            "reasoning_trace",
            "confidence",
            "metadata",
            "structured_trace",
            "tools_used",
            "total_iterations",
            "iteration_limit_reached"
        ]
    );
    assert_eq!(written["total_iterations"], json!(2));
    assert_eq!(written["tools_used"], json!(["web_search"]));
    assert_eq!(
        written["reasoning_trace"],
        json!("1. I should look it up (called web_search and 1 more)\n2. Paris it is (finished)")
    );
    let read: TaskOutput = serde_json::from_value(written).unwrap();
    assert_eq!(read, output());
}

#[test]
fn structured_trace_length_equals_total_iterations() {
    assert_eq!(
        read_error::<TaskOutput>(with(written(), "total_iterations", json!(3))),
        "total_iterations is 3, but structured_trace has 2 steps"
    );
    read_error::<TaskOutput>(with(written(), "total_iterations", json!(-1)));
}

#[test]
fn steps_of_a_trace_are_counted_from_1_without_gaps() {
    let wrong = vec![finished(2)];
    assert_eq!(
        TaskOutput::finished(text("t1"), text("Paris"), Confidence::FULL, wrong),
        Err(OutputError::StepOrder {
            place: 1,
            iteration: turn(2)
        })
    );
}

#[test]
fn answer_is_empty_only_at_the_iteration_limit() {
    assert_eq!(
        read_error::<TaskOutput>(with(written(), "answer", json!(" "))),
        "answer can be empty only if iteration_limit_reached is true"
    );
    let calls = [made("r:1:0", CallState::Success)];
    let trace = vec![called(1, &calls)];
    let output = TaskOutput::at_limit(text("t1"), String::new(), Confidence::NONE, trace).unwrap();
    let written = serde_json::to_value(&output).unwrap();
    assert_eq!(written["iteration_limit_reached"], json!(true));
    assert_eq!(
        serde_json::from_value::<TaskOutput>(written).unwrap(),
        output
    );
}

#[test]
fn a_run_at_the_limit_must_not_finish() {
    assert_eq!(
        read_error::<TaskOutput>(with(written(), "iteration_limit_reached", json!(true))),
        "only the last step can finish, and not with iteration_limit_reached"
    );
    let twice = vec![finished(1), finished(2)];
    assert_eq!(
        TaskOutput::finished(text("t1"), text("Paris"), Confidence::FULL, twice),
        Err(OutputError::Finish)
    );
}

#[test]
fn high_confidence_at_the_limit_is_overconfident() {
    let at_limit = |confidence| {
        TaskOutput::at_limit(text("t1"), String::new(), confidence, Vec::new()).unwrap()
    };
    assert!(at_limit(Confidence::FULL).is_overconfident());
    assert!(!at_limit(Confidence::HALF).is_overconfident());
    assert!(!output().is_overconfident());
}

#[test]
fn task_output_confidence_is_between_0_and_1() {
    read_error::<TaskOutput>(with(written(), "confidence", json!(1.01)));
    read_error::<TaskOutput>(without(written(), "confidence"));
}

#[test]
fn tools_used_of_an_output_are_unique_and_permitted() {
    let twice = json!(["web_search", "web_search"]);
    assert_eq!(
        read_error::<TaskOutput>(with(written(), "tools_used", twice)),
        "tools_used names `web_search` more than once"
    );
    assert_eq!(
        read_error::<TaskOutput>(with(written(), "tools_used", json!(["read_file"]))),
        "tools_used differs from the tools in structured_trace: web_search"
    );
    let only_refused = vec![called(1, &[denied("r:1:0")]), finished(2)];
    let output =
        TaskOutput::finished(text("t1"), text("Paris"), Confidence::FULL, only_refused).unwrap();
    assert!(output.tools_used().is_empty());
}

#[test]
fn an_output_without_tools_omits_their_fields() {
    let plain = json!({
        "task_id": "t1", "answer": "42", "reasoning_trace": "I thought", "confidence": 0.5,
        "metadata": {},
    });
    let output: TaskOutput = serde_json::from_value(plain.clone()).unwrap();
    assert_eq!((output.total_iterations(), output.answer()), (0, "42"));
    assert!(!output.iteration_limit_reached());
    let nulls = with(
        with(plain, "tools_used", json!(null)),
        "structured_trace",
        json!(null),
    );
    assert_eq!(serde_json::from_value::<TaskOutput>(nulls).unwrap(), output);
}

#[test]
fn an_external_output_may_list_its_tools_without_its_calls() {
    let mut foreign = written();
    foreign["structured_trace"][0]
        .as_object_mut()
        .unwrap()
        .shift_remove("calls");
    foreign["tools_used"] = json!(["web_search", "rank_results"]);
    let output: TaskOutput = serde_json::from_value(foreign.clone()).unwrap();
    assert_eq!(
        output.tools_used(),
        [tool("web_search"), tool("rank_results")]
    );
    let derived: TaskOutput = serde_json::from_value(without(foreign, "tools_used")).unwrap();
    assert_eq!(derived.tools_used(), [tool("web_search")]);
}

fn response() -> AgentResponse {
    let calls = [
        denied("r:1:0"),
        made("r:1:1", CallState::Error),
        made("r:2:0", CallState::Success),
    ];
    let confidence = Confidence::try_from(0.95).unwrap();
    AgentResponse::new(text("Paris"), text("Looked it up"), &calls, confidence)
}

#[test]
fn a_response_lists_only_permitted_calls() {
    let statuses: Vec<_> = response()
        .tool_calls()
        .iter()
        .map(|call| call.status().as_str())
        .collect();
    assert_eq!(statuses, ["failed", "success"]);
}

#[test]
fn answer_and_reasoning_are_not_empty() {
    let written = serde_json::to_value(response()).unwrap();
    assert_eq!(
        serde_json::from_value::<AgentResponse>(written.clone()).unwrap(),
        response()
    );
    for key in ["answer", "reasoning"] {
        read_error::<AgentResponse>(with(written.clone(), key, json!("")));
        read_error::<AgentResponse>(without(written.clone(), key));
    }
    read_error::<AgentResponse>(with(written.clone(), "confidence", json!(1.5)));
    let without_calls: AgentResponse =
        serde_json::from_value(without(written, "tool_calls")).unwrap();
    assert!(without_calls.tool_calls().is_empty());
}

#[test]
fn a_reply_has_content_and_invocations() {
    let calls = [denied("r:1:0"), made("r:2:0", CallState::Success)];
    let reply = AgentReply::of(&response(), &calls);
    let written = serde_json::to_value(&reply).unwrap();
    assert_eq!(
        written,
        json!({
            "responseContent": "Paris",
            "responseToolsUsed": [{
                "invocationToolName": "web_search",
                "invocationArgs": { "query": "capital of France", "max_results": 5 },
                "invocationResult": { "Right": "Paris" }
            }]
        })
    );
    assert_eq!(
        serde_json::from_value::<AgentReply>(written).unwrap(),
        reply
    );
}

#[test]
fn the_content_of_a_reply_may_be_empty_only_after_an_error() {
    let empty = json!({ "responseContent": "", "responseToolsUsed": [] });
    assert_eq!(
        read_error::<AgentReply>(empty.clone()),
        "responseContent can be empty only if an invocation failed"
    );
    let failed = json!([{
        "invocationToolName": "sayHello", "invocationArgs": {}, "invocationResult": { "Left": "no" }
    }]);
    let reply: AgentReply =
        serde_json::from_value(with(empty, "responseToolsUsed", failed)).unwrap();
    assert_eq!((reply.content(), reply.tools_used().len()), ("", 1));
    let no_tools: AgentReply =
        serde_json::from_value(json!({ "responseContent": "Hello" })).unwrap();
    assert!(no_tools.tools_used().is_empty());
}

#[test]
fn missing_tools_has_at_least_one_entry() {
    assert_eq!(
        ToolGapReport::new(Vec::new(), text("task"), Vec::new()),
        None
    );
    let report = ToolGapReport::new(vec![text("account_access")], text("task"), Vec::new());
    let written = serde_json::to_value(report.unwrap()).unwrap();
    assert_eq!(
        read_error::<ToolGapReport>(with(written, "missing_tools", json!([]))),
        "missing_tools must have at least one entry"
    );
}

#[test]
fn attempted_task_is_not_empty() {
    let report = super::examples::tool_gap_report();
    let read: ToolGapReport = serde_json::from_value(report.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), report);
    read_error::<ToolGapReport>(with(report.clone(), "attempted_task", json!("")));
    read_error::<ToolGapReport>(without(report.clone(), "existing_tools_checked"));
    let none_checked = with(report, "existing_tools_checked", json!([]));
    assert!(serde_json::from_value::<ToolGapReport>(none_checked).is_ok());
}

#[test]
fn an_older_report_reads_and_is_written_unchanged() {
    let old = super::examples::tool_gap_report();
    let read: ToolGapReport = serde_json::from_value(old.clone()).unwrap();
    assert_eq!((read.confidence(), read.moment()), (None, None));
    assert!(read.capabilities().is_empty());
    assert_eq!(serde_json::to_value(read).unwrap(), old);
}

#[test]
fn capabilities_must_be_among_the_missing_tools() {
    let missing = MissingCapability {
        request: None,
        capability: text("send an SMS"),
        wanted_tool: Some("send_sms".parse().unwrap()),
        confidence: Some(Confidence::HALF),
        nearest_tools: vec![NearestTool {
            name: "send_email".parse().unwrap(),
            nearness: Confidence::HALF,
        }],
        proposed_tool: Some(text("[send_sms:Tool {description: \"d\"} | ()==>(::Text)]")),
        because: None,
    };
    let report = ToolGapReport::of_capabilities(vec![missing], text("tell Ann"), Vec::new());
    let report = report.unwrap().at_moment(GapMoment::BeforeRun);
    let report = report.with_confidence(Confidence::FULL);
    assert_eq!(report.missing_tools(), [text("send an SMS")]);
    let written = serde_json::to_value(&report).unwrap();
    assert_eq!(written["moment"], "before_run");
    let read: ToolGapReport = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(read, report);
    assert_eq!(
        read_error::<ToolGapReport>(with(written.clone(), "missing_tools", json!(["fly"]))),
        "every entry of capabilities must be named in missing_tools"
    );
    read_error::<ToolGapReport>(with(written.clone(), "confidence", json!(1.5)));
    read_error::<ToolGapReport>(with(written, "moment", json!("later")));
    assert_eq!(
        ToolGapReport::of_capabilities(Vec::new(), text("t"), Vec::new()),
        None
    );
}
