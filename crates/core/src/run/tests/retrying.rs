//! Which attempts at a task of a plan may be retried.

use super::*;

/// The risk of the call and the idempotence of its tool decide.
#[test]
fn failed_call_can_be_retried_if_it_is_reversible_or_idempotent() {
    let may_retry = |risk: &str, idempotent: bool, effect: Effect, category: ErrorCategory| {
        let text = format!(
            r#"[helper:Agent {{instruction: "Help.", model: "OpenAI/gpt-4o-mini"}} |
                [act:Tool {{description: "Acts on behalf of a person", risk: {risk}, idempotent: {idempotent}}} | (to::Text)==>(::Text)]]"#
        );
        let agent = windlass_spec::read(&text).file.unwrap().agents()[0].clone();
        let task = Task {
            call: Some(Box::new(call("act", json!({"to": "Ada"})))),
            description: "Act.".to_owned(),
            ..Task::default()
        };
        let started = Event::Started {
            run: RunId::new("r1").unwrap(),
            agent: Box::new(agent.clone()),
            agents: Vec::new(),
            assembly: Map::new(),
            parent: None,
            holds: None,
            task,
            settings: Settings::default(),
            at: at(0),
        };
        let mut harness = RunHarness {
            run: Run::fold([&started]).unwrap(),
            rules: Rules::new(&Governance::default(), &agent, &[]).unwrap(),
            journal: vec![started],
            second: 0,
        };
        let answer = harness.run.direct_answer().unwrap();
        harness.answer(answer);
        let failure = Failure::new(category, effect, "it did not work");
        harness.run_open_calls(|_, _| CallEnd::Error(failure.clone()));
        let failure = harness.run.single_outcome().unwrap().unwrap_err();
        match TaskEnd::failed(&harness.run, failure) {
            TaskEnd::Error { may_retry, .. } => may_retry,
            other => panic!("{other:?}"),
        }
    };
    let failed = ErrorCategory::ToolFailure;
    for (risk, idempotent, expected) in [
        ("reversible", false, true),
        ("reversible", true, true),
        ("reversible_with_delay", false, false),
        ("reversible_with_delay", true, true),
        ("irreversible", false, false),
        ("irreversible", true, false),
    ] {
        for effect in [Effect::None, Effect::Unknown] {
            let found = may_retry(risk, idempotent, effect, failed);
            assert_eq!(found, expected, "{risk}, {idempotent}, {effect:?}");
        }
        // Applied effects and permanent errors are not retried.
        assert!(!may_retry(risk, idempotent, Effect::Applied, failed));
        let denied = ErrorCategory::Authentication;
        assert!(!may_retry(risk, idempotent, Effect::None, denied));
    }
}
