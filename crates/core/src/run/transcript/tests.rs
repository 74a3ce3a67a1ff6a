//! How values are shown to a model, and how its mistakes are counted.

use serde_json::json;
use windlass_spec::{Timestamp, Turn};

use super::*;

fn transcript() -> Transcript {
    let settings = Settings {
        max_observation: 8,
        ..Settings::default()
    };
    Transcript::new(&settings, &Task::default())
}

fn answer() -> Answer {
    Answer {
        answer: "42".to_owned(),
        reasoning: String::new(),
        confidence: windlass_spec::Confidence::HALF,
    }
}

fn too_long() -> Event {
    Event::ModelFailed {
        turn: Turn::FIRST,
        kind: ModelErrorKind::ContextTooLong,
        message: "too long".to_owned(),
        at: Timestamp::from_microseconds(0),
    }
}

fn answered(transcript: &mut Transcript, summary: TurnSummary) {
    let event = Event::ModelAnswered {
        turn: Turn::FIRST,
        answer: crate::model::ModelAnswer::default(),
        at: Timestamp::from_microseconds(0),
    };
    transcript.apply(&event, Some(summary));
}

#[test]
fn long_values_are_cut_and_more_so_after_each_shortening() {
    let mut transcript = transcript();
    let value = json!("0123456789");
    assert_eq!(
        transcript.shown(&value),
        "01234567… (2 more characters are not shown)"
    );
    transcript.apply(&too_long(), None);
    assert_eq!(
        transcript.shown(&value),
        "0123… (6 more characters are not shown)"
    );
    transcript.apply(&too_long(), None);
    assert!(transcript.can_shorten());
    transcript.apply(&too_long(), None);
    assert!(!transcript.can_shorten(), "it cannot be shortened for ever");
}

#[test]
fn mistaken_turns_are_counted_until_a_valid_one() {
    let mut transcript = transcript();
    for _ in 0..2 {
        let mistaken = TurnSummary {
            mistakes: BTreeMap::from([(MistakeKind::EmptyAnswer, 1)]),
            ..TurnSummary::default()
        };
        answered(&mut transcript, mistaken);
    }
    assert_eq!(transcript.mistaken_turns(), 2);
    assert_eq!(transcript.mistakes()[&MistakeKind::EmptyAnswer], 2);
    let valid = TurnSummary {
        has_calls: true,
        ..TurnSummary::default()
    };
    answered(&mut transcript, valid);
    assert_eq!(transcript.mistaken_turns(), 0);
}

#[test]
fn first_answer_is_kept() {
    let mut transcript = transcript();
    for text in ["42", "43"] {
        let answer = Answer {
            answer: text.to_owned(),
            ..answer()
        };
        let finished = TurnSummary {
            answer: Some(answer),
            ..TurnSummary::default()
        };
        answered(&mut transcript, finished);
    }
    assert_eq!(transcript.answer(), Some(&answer()));
}

fn recalled(section: StrategySection, sequence: &[&str], text: &str) -> RecalledStrategy {
    RecalledStrategy {
        id: windlass_spec::StrategyId::of_digest(section, text.as_bytes()),
        section,
        sequence: sequence
            .iter()
            .map(|name| windlass_spec::ToolName::new(*name).unwrap())
            .collect(),
        text: text.to_owned(),
        similarity: 0.9,
        lower_bound: 0.7,
    }
}

/// The system prompt with these strategies.
fn prompt(given: &[&str], strategies: Vec<RecalledStrategy>) -> String {
    let mut transcript = transcript();
    let at = Timestamp::from_microseconds(0);
    transcript.apply(&Event::Recalled { strategies, at }, None);
    let agent = Agent::new(
        windlass_spec::AgentName::new("helper").unwrap(),
        "reflex".parse().unwrap(),
        NonEmptyText::new("Help.").unwrap(),
    );
    let task = Task {
        strategies: given.iter().map(|&given| given.to_owned()).collect(),
        ..Task::default()
    };
    transcript.system(&agent, &task, &[], true)
}

#[test]
fn strategies_name_their_tool_sequence() {
    // The text names no tool of the sequence.
    let content = "For database queries about recent data, apply temporal filter first, then search vector DB, then rank results";
    let tools = ["temporal_filter", "search_vector_db", "rank_results"];
    let shown = prompt(
        &[],
        vec![recalled(StrategySection::Strategies, &tools, content)],
    );
    let expected = format!(
        "{STRATEGIES_HEADING}\n- {content} Tools: `temporal_filter`, then `search_vector_db`, then `rank_results`."
    );
    assert!(shown.ends_with(&expected), "{shown}");
    // A text that names them is enough, but only in their order.
    let named = "First `find`, then `list`.";
    let shown = |tools: &[&str]| {
        prompt(
            &[],
            vec![recalled(StrategySection::Strategies, tools, named)],
        )
    };
    assert!(shown(&["find", "list"]).ends_with(&format!("- {named}")));
    assert!(shown(&["list", "find"]).ends_with("Tools: `list`, then `find`."));
}

#[test]
fn pitfalls_and_observations_have_headings_of_their_own_whatever_their_words() {
    let shown = prompt(
        &["Be\n\nquick."],
        vec![
            recalled(
                StrategySection::Pitfalls,
                &["search_db", "filter"],
                "First `search_db`, then `filter` answers this.",
            ),
            recalled(StrategySection::Observations, &[], "Tables are in English."),
            recalled(StrategySection::Strategies, &["find"], "Use `find`."),
        ],
    );
    let expected = format!(
        "\n\n{STRATEGIES_HEADING}\n- Be quick.\n- Use `find`.\n\n{PITFALLS_HEADING}\n- First `search_db`, \
         then `filter` answers this.\n\n{OBSERVATIONS_HEADING}\n- Tables are in English."
    );
    assert!(shown.ends_with(&expected), "{shown}");
}

fn tool_names(names: &[&str]) -> Vec<windlass_spec::ToolName> {
    let names = names.iter().map(|name| windlass_spec::ToolName::new(*name));
    names.map(Result::unwrap).collect()
}

fn texts(texts: &[&str]) -> Vec<NonEmptyText> {
    let texts = texts.iter().map(|text| NonEmptyText::new(*text));
    texts.map(Result::unwrap).collect()
}

fn offered(advice: IntentAdvice) -> Event {
    Event::Offered {
        intent: None,
        tools: Vec::new(),
        left_out: Vec::new(),
        set: BTreeMap::new(),
        gap: None,
        disabled: Vec::new(),
        advice: Some(Box::new(advice)),
        environment: None,
        at: Timestamp::from_microseconds(0),
    }
}

#[test]
fn prompt_has_what_the_intent_suggests_and_asks_for_what_is_not_stated() {
    let mut transcript = transcript();
    let advice = IntentAdvice {
        tools: tool_names(&["http_get", "web_search"]),
        needs: texts(&["the address", "`url` for the tool `http_get`"]),
        fallbacks: Vec::new(),
    };
    transcript.apply(&offered(advice.clone()), None);
    let agent = Agent::new(
        windlass_spec::AgentName::new("helper").unwrap(),
        "reflex".parse().unwrap(),
        NonEmptyText::new("Help.").unwrap(),
    );
    let shown = |can_ask| transcript.system(&agent, &Task::default(), &[], can_ask);
    let expected = format!(
        "\n\n{INTENT_HEADING}\n- Tools that suit it, best first: `http_get`, `web_search`.\n- To know: the address; \
         `url` for the tool `http_get`. Ask with `ask_human` for what is stated nowhere."
    );
    assert!(shown(true).ends_with(&expected), "{}", shown(true));
    assert!(shown(false).ends_with("Name in your answer what is stated nowhere."));
}

#[test]
fn failed_call_of_a_suggested_tool_offers_the_alternatives() {
    use windlass_spec::{CallChange, CallId, Effect, ErrorCategory, Failure, RunId};
    let mut transcript = transcript();
    let advice = IntentAdvice {
        tools: tool_names(&["http_get"]),
        needs: Vec::new(),
        fallbacks: texts(&["search the web for it", "ask for the exact address or path"]),
    };
    transcript.apply(&offered(advice), None);
    let failed = |tool: &str, has_run: bool| {
        let id = CallId {
            run: RunId::new("r1").unwrap(),
            turn: Turn::FIRST,
            index: 0,
        };
        let at = Timestamp::from_microseconds(0);
        let name = windlass_spec::ToolName::new(tool).unwrap();
        let mut record = CallRecord::requested(id, name, serde_json::Map::new(), at);
        let failure = Failure::new(ErrorCategory::ToolFailure, Effect::None, "it is down");
        if has_run {
            record.advance(CallChange::Start, at).unwrap();
        }
        record.advance(CallChange::Fail(failure), at).unwrap();
        transcript.call_observation(&record, &CallProgress::default())
    };
    let offered =
        format!(" {ALTERNATIVES} search the web for it; ask for the exact address or path.");
    assert!(failed("http_get", true).ends_with(&offered));
    // Not for another tool, and not for a call that was refused.
    assert!(!failed("other", true).contains(ALTERNATIVES));
    assert!(!failed("http_get", false).contains(ALTERNATIVES));
}

#[test]
fn calls_and_results_of_a_conversation_are_shown_together_or_not_at_all() {
    let call = |id: &str| ChatMessage::Assistant {
        content: String::new(),
        calls: vec![ChatCall {
            id: id.to_owned(),
            tool: "t".to_owned(),
            arguments: json!({}),
        }],
    };
    let result = |id: &str| ChatMessage::Tool {
        call_id: id.to_owned(),
        tool: "t".to_owned(),
        content: "found".to_owned(),
        untrusted: false,
    };
    let user = ChatMessage::User {
        content: "Find it.".to_owned(),
    };
    let groups = grouped(&[user, call("c1"), result("c1"), result("c1"), call("c2")]);
    let sizes: Vec<usize> = groups.iter().map(|group| group.messages.len()).collect();
    assert_eq!(sizes, [1, 3, 1]);
}

#[test]
fn results_of_earlier_runs_are_in_the_request() {
    let call = ChatCall {
        id: "call_1_1_0".to_owned(),
        tool: "sayHello".to_owned(),
        arguments: json!({"name": "Ada"}),
    };
    let conversation = vec![
        ChatMessage::User {
            content: "Say hello to Ada".to_owned(),
        },
        ChatMessage::Assistant {
            content: String::new(),
            calls: vec![call],
        },
        ChatMessage::Tool {
            call_id: "call_1_1_0".to_owned(),
            tool: "sayHello".to_owned(),
            content: "Hello, Ada! Nice to meet you.".to_owned(),
            untrusted: false,
        },
        ChatMessage::Assistant {
            content: "I greeted Ada.".to_owned(),
            calls: Vec::new(),
        },
    ];
    let task = Task {
        description: "Whom did you greet?".to_owned(),
        conversation: conversation.clone(),
        ..Task::default()
    };
    let request = Transcript::new(&Settings::default(), &task).request(&[], Vec::new());
    let shown: Vec<ChatMessage> = request.messages.iter().map(|one| (**one).clone()).collect();
    assert_eq!(shown[..4], conversation);
    assert_eq!(shown.len(), 5);
}
