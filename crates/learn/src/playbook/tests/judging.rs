//! What a run is taken for, and what it may not teach.

use super::*;

#[test]
fn words_of_a_model_may_not_add_facts() {
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
    // What was learned may be quoted, and an apostrophe quotes nothing.
    assert!(accept("For a customer's “Refund order 7”: `find`, then `refund`.").is_ok());
    assert!(accept("Don't ask the customers' friends; `find`, then `refund`.").is_ok());
}

#[test]
fn an_outage_is_nobodys_failure() {
    let passing = [
        ErrorCategory::Unavailable,
        ErrorCategory::RateLimited,
        ErrorCategory::Expired,
        ErrorCategory::Authentication,
        ErrorCategory::Cancelled,
        ErrorCategory::Internal,
    ];
    for category in passing {
        let mut run = experience(&[("find", Ok(())), ("refund", Err(category))]);
        run.recalled = vec![RecalledBefore {
            id: StrategyId::new("a").unwrap(),
            section: StrategySection::Strategies,
            sequence: tools(&["find"]),
        }];
        let evidence = reflect(&run);
        assert_eq!(evidence.verdict, Verdict::Unclear, "{category}");
        assert_eq!(evidence.pitfalls, []);
        assert_eq!(evidence.recalled[0].vote, Vote::Neutral);
        // Nor if it goes on until there are no turns left.
        run.ended = Ended::Short("it ran out of turns".to_owned());
        assert_eq!(reflect(&run).verdict, Verdict::Unclear, "{category}");
        // Whoever can tell knows better.
        run.ended = Ended::Completed;
        run.checked = Some(true);
        assert_eq!(reflect(&run).verdict, Verdict::Succeeded, "{category}");
        run.checked = Some(false);
        assert_eq!(reflect(&run).verdict, Verdict::Failed, "{category}");
    }
}

#[test]
fn what_a_person_refused_says_nothing_even_if_the_answer_is_wrong() {
    let mut run = experience(&[("find", Ok(()))]);
    run.refused_by_person = ToolName::new("refund").ok();
    run.checked = Some(false);
    assert_eq!(reflect(&run).verdict, Verdict::Unclear);
    run.checked = None;
    run.ended = Ended::Short("it ran out of turns".to_owned());
    assert_eq!(reflect(&run).verdict, Verdict::Unclear);
}

#[test]
fn what_strangers_may_have_caused_is_no_part_of_a_warning() {
    let mut run = experience(&[("send", Ok(())), ("refund", FAILED), ("find", Ok(()))]);
    run.calls[0].teaches = false;
    let evidence = reflect(&run);
    assert_eq!(evidence.pitfalls[0].sequence, tools(&["refund"]));
}

#[test]
fn only_calls_that_teach_follow_a_strategy() {
    let mut run = experience(&[("find", Ok(())), ("refund", Ok(()))]);
    let sequence = tools(&["find", "refund"]);
    let is_followed = |run: &Experience, section| is_followed(section, &sequence, &run.calls);
    assert!(is_followed(&run, StrategySection::Strategies));
    assert!(!is_followed(&run, StrategySection::Pitfalls));
    run.calls[0].teaches = false;
    assert!(!is_followed(&run, StrategySection::Strategies));
}
