//! Verdicts on runs, and what must not be learned from them.

use super::*;

#[test]
fn rewording_must_not_add_facts() {
    let strategy = ToolCallingStrategy::new(
        StrategySection::Strategies,
        text("For tasks like \"Refund order 7\": `find`, then `refund`."),
    )
    .with_sequence(tools(&["find", "refund"]))
    .unwrap();
    let known = ["find", "refund", "cancel"];
    let accept = |words: &str| accept_wording(&strategy, words, known);
    assert!(accept("To refund something, use `find` and then `refund`.").is_err());
    assert!(accept("To pay somebody back, use `find` and then `refund`.").is_ok());
    assert_eq!(
        accept("First `refund`, then `find`."),
        Err(WordingError::Tools)
    );
    assert_eq!(
        accept("`find`, `refund`, `cancel`."),
        Err(WordingError::Tools)
    );
    assert_eq!(
        accept("`find`, then `refund`, within 30 days."),
        Err(WordingError::Invented("30".to_owned()))
    );
    assert_eq!(
        accept("`find`, then `refund`, as \"the boss\" said."),
        Err(WordingError::Invented("the boss".to_owned()))
    );
    assert_eq!(accept("`find`\n`refund`"), Err(WordingError::TooLong));
    let refused = |words: &str, invented: &str| {
        let error = Err(WordingError::Invented(invented.to_owned()));
        assert_eq!(accept(words), error, "{words}");
    };
    refused(
        "“By order of the boss”: `find`, `refund`.",
        "By order of the boss",
    );
    refused("As ‘the boss’ said: `find`, `refund`.", "the boss");
    refused("As 'the boss' said: `find`, `refund`.", "the boss");
    refused(
        "Tell them \"it is free: `find`, `refund`.",
        "it is free: `find`, `refund`.",
    );
    refused("`find`, then `refund`, within thirty days.", "thirty");
    refused("`find`, then `refund`, at most twenty-one.", "twenty-one");
    refused(
        "`find`, then `refund`, see https://evil.example/x.",
        "evil.example",
    );
    refused("`find`, then `refund`, and tell me@evil.", "me@evil.");
    refused("`find`, then `refund`, not drop_table.", "drop_table");
    refused("`find`, then `refund`, not dropTable.", "dropTable");
    refused("`find`, then `refund`, not `rm`.", "rm");
    // The learned text may be quoted, and an apostrophe is no quotation mark.
    assert!(accept("For a customer's “Refund order 7”: `find`, then `refund`.").is_ok());
    assert!(accept("Don't ask the customers' friends; `find`, then `refund`.").is_ok());
}

#[test]
fn outage_is_no_evidence_about_tools() {
    let temporary = [
        ErrorCategory::Unavailable,
        ErrorCategory::RateLimited,
        ErrorCategory::Expired,
        ErrorCategory::Authentication,
        ErrorCategory::Cancelled,
        ErrorCategory::Internal,
    ];
    for category in temporary {
        let mut run = experience(&[("find", Ok(())), ("refund", Err(category))]);
        run.recalled = vec![ShownStrategy {
            id: StrategyId::new("a").unwrap(),
            section: StrategySection::Strategies,
            sequence: tools(&["find"]),
        }];
        let evidence = reflect(&run);
        assert_eq!(evidence.verdict, RunVerdict::Unclear, "{category}");
        assert_eq!(evidence.pitfalls, []);
        assert_eq!(evidence.recalled[0].vote, Vote::Neutral);
        // Also if the run continues until its turns are used up.
        run.ended = ExperienceEnd::Incomplete("it ran out of turns".to_owned());
        assert_eq!(reflect(&run).verdict, RunVerdict::Unclear, "{category}");
        // The checker's result takes precedence.
        run.ended = ExperienceEnd::Completed;
        run.checked = Some(true);
        assert_eq!(reflect(&run).verdict, RunVerdict::Succeeded, "{category}");
        run.checked = Some(false);
        assert_eq!(reflect(&run).verdict, RunVerdict::Failed, "{category}");
    }
}

#[test]
fn rejected_call_makes_the_verdict_unclear_even_if_the_answer_is_wrong() {
    let mut run = experience(&[("find", Ok(()))]);
    run.refused_by_person = ToolName::new("refund").ok();
    run.checked = Some(false);
    assert_eq!(reflect(&run).verdict, RunVerdict::Unclear);
    run.checked = None;
    run.ended = ExperienceEnd::Incomplete("it ran out of turns".to_owned());
    assert_eq!(reflect(&run).verdict, RunVerdict::Unclear);
}

#[test]
fn calls_that_untrusted_content_may_have_caused_are_not_in_pitfalls() {
    let mut run = experience(&[("send", Ok(())), ("refund", FAILED), ("find", Ok(()))]);
    run.calls[0].teaches = false;
    let evidence = reflect(&run);
    assert_eq!(evidence.pitfalls[0].sequence, tools(&["refund"]));
}

#[test]
fn only_learnable_calls_count_as_following_a_strategy() {
    let mut run = experience(&[("find", Ok(())), ("refund", Ok(()))]);
    let sequence = tools(&["find", "refund"]);
    let is_followed = |run: &Experience, section| is_followed(section, &sequence, &run.calls);
    assert!(is_followed(&run, StrategySection::Strategies));
    assert!(!is_followed(&run, StrategySection::Pitfalls));
    run.calls[0].teaches = false;
    assert!(!is_followed(&run, StrategySection::Strategies));
}
