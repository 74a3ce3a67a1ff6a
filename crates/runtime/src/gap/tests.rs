//! What an answer says about itself, and what a model's list says.

use super::{Says, capabilities, says_it_cannot};

#[test]
fn an_answer_that_says_it_cannot_is_told_from_one_that_does() {
    for answer in [
        "I don’t have a tool for that.",
        "There is no tool that books flights.",
        "I cannot do this: none of my tools fits the task.",
    ] {
        assert_eq!(says_it_cannot(answer), Some(Says::WantOfTool), "{answer}");
    }
    for answer in ["I'm unable to help with that.", "Sorry, I can't."] {
        assert_eq!(says_it_cannot(answer), Some(Says::Cannot), "{answer}");
    }
    for answer in [
        "Hello, Ada!",
        "The cannon cannot be seen.",
        "It costs 3 euros.",
    ] {
        assert_eq!(says_it_cannot(answer), None, "{answer}");
    }
}

#[test]
fn a_list_is_read_whatever_its_marks() {
    let said = "1. send an e-mail to Ann.\n- `look up the weather`\n\n* nothing\n   • book a room";
    assert_eq!(
        capabilities(said),
        [
            "send an e-mail to Ann",
            "look up the weather",
            "book a room"
        ]
    );
    assert!(capabilities("Nothing").is_empty());
    assert_eq!(capabilities(&"x\n".repeat(50)).len(), 8);
}
