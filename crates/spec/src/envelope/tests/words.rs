//! The closed sets of words.

use crate::envelope::{
    Action, ExecutionMode, HilAction, InterventionStatus, InterventionType, SecurityLevel,
    ToolStatus, WorkStatus,
};

macro_rules! assert_words {
    ($name:ident, $words:expr) => {
        let words: Vec<&str> = $name::ALL.iter().map(|word| word.as_str()).collect();
        assert_eq!(words, $words);
        for word in $name::ALL {
            assert_eq!(word.as_str().to_uppercase().parse(), Ok(word));
            assert_eq!(word.as_str().to_lowercase().parse(), Ok(word));
            let json = format!("\"{}\"", word.as_str().to_lowercase());
            assert_eq!(serde_json::from_str::<$name>(&json).unwrap(), word);
            assert_eq!(serde_json::to_string(&word).unwrap(), format!("\"{word}\""));
        }
    };
}

#[test]
fn there_are_ten_statuses() {
    assert_words!(
        ToolStatus,
        [
            "success",
            "error",
            "pending",
            "in_progress",
            "created",
            "human_input_requested",
            "authorization_requested",
            "authorization_required",
            "credential_required",
            "human_required",
        ]
    );
}

#[test]
fn words_are_read_in_any_case_and_written_in_one() {
    assert_words!(HilAction, ["ask_human", "request_authorization"]);
    assert_words!(
        InterventionType,
        ["captcha", "login", "payment", "wallet", "verification"]
    );
    assert_words!(SecurityLevel, ["LOW", "MEDIUM", "HIGH", "CRITICAL"]);
    assert_words!(ExecutionMode, ["parallel", "sequential"]);
    assert_words!(WorkStatus, ["pending", "in_progress", "created"]);
    assert_words!(
        InterventionStatus,
        ["credential_required", "human_required"]
    );
}

#[test]
fn an_unknown_word_is_rejected_with_the_known_ones() {
    let error = serde_json::from_str::<SecurityLevel>("\"SEVERE\"").unwrap_err();
    let expected =
        "`SEVERE` is not a valid security level; write one of LOW, MEDIUM, HIGH, CRITICAL";
    assert_eq!(error.to_string(), expected);
    assert!("severe".parse::<SecurityLevel>().is_err());
}

#[test]
fn security_levels_are_ordered() {
    assert!(SecurityLevel::ALL.is_sorted());
    assert!(SecurityLevel::Critical > SecurityLevel::High);
}

#[test]
fn five_statuses_wait_for_a_person() {
    let waiting: Vec<_> = ToolStatus::ALL
        .into_iter()
        .filter(|status| status.is_hil())
        .map(|status| (status.as_str(), status.hil_action().unwrap().as_str()))
        .collect();
    let expected = [
        ("human_input_requested", "ask_human"),
        ("authorization_requested", "request_authorization"),
        ("authorization_required", "request_authorization"),
        ("credential_required", "ask_human"),
        ("human_required", "ask_human"),
    ];
    assert_eq!(waiting, expected);
}

#[test]
fn names_of_known_tools_are_valid_actions() {
    let actions = [
        "ask_human",
        "request_authorization",
        "check_security_status",
        "format_response",
        "web_search",
        "web_crawl",
        "web_automation",
        "remember",
        "recall",
        "forget",
        "search_memories",
        "create_execution_plan",
        "update_task_status",
        "get_execution_status",
    ];
    for name in actions {
        assert_eq!(Action::new(name).unwrap().as_str(), name);
    }
    assert!(Action::new(" ").is_err());
    assert_eq!(Action::new("unknown"), Ok(Action::UNKNOWN));
}
