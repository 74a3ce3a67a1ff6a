//! Tests of stated inabilities and of lists of capabilities.

use super::{Inability, capabilities, stated_inability};

#[test]
fn an_answer_that_states_an_inability_is_detected() {
    for answer in [
        "I don’t have a tool for that.",
        "I do not have access to any tool that books flights.",
        "I currently have no tool to do so.",
        "There is no tool that books flights.",
        "There's no suitable tool available.",
        "I cannot do this: none of my tools fits the task.",
        "None of the available tools can send a letter.",
        "No tool can translate this.",
        "I found no tool for it.",
        "I lack the tools to do that.",
        "My tools do not reach the printer.",
        "I couldn't find a tool for this task.",
        "I have no function for translating.",
        "There is no available function to do this.",
        "I cannot do that without a tool.",
    ] {
        assert_eq!(
            stated_inability(answer),
            Some(Inability::NoTool),
            "{answer}"
        );
    }
    for answer in [
        "I'm unable to help with that.",
        "Sorry, I can't.",
        "I could not book it.",
        "I was not able to do that.",
    ] {
        assert_eq!(
            stated_inability(answer),
            Some(Inability::Cannot),
            "{answer}"
        );
    }
}

#[test]
fn an_answer_that_mentions_tools_without_lacking_one_states_no_inability() {
    for answer in [
        "Hello, Ada!",
        "The cannon cannot be seen.",
        "Hawaii cannot be reached by train.",
        "It costs 3 euros.",
        "No tools were needed: 2 and 2 is 4.",
        "There are no tools needed for that.",
        "There were no tools required.",
        "I didn't need any tools for this.",
        "I did not use any tool.",
        "I don't have to call any tools here.",
        "None of the tools were needed.",
        "The button has no tooltip.",
        "There is no functional change.",
        "There is no function named `parse` in the file.",
        "The module has no functions.",
        "No function was changed.",
        "It can be assembled without a tool.",
        "There is no tool in the garage.",
        "I couldn't find any mistakes in the letter.",
        "I cannot recommend it enough.",
        "The tools are in the shed.",
    ] {
        assert_eq!(stated_inability(answer), None, "{answer}");
    }
}

#[test]
fn list_markers_are_removed_from_capabilities() {
    let list = "1. send an e-mail to Ann.\n- `look up the weather`\n\n* nothing\n   • book a room";
    assert_eq!(
        capabilities(list),
        [
            "send an e-mail to Ann",
            "look up the weather",
            "book a room"
        ]
    );
    assert!(capabilities("Nothing").is_empty());
    assert_eq!(capabilities(&"x\n".repeat(50)).len(), 8);
}
