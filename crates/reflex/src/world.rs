//! Questions about the world, and the tools that look them up. A search of the web answers such a question
//! although no word of the question is in the description of the tool.

use crate::choose::ToolView;
use crate::fit::{ValueKind, content_words, mentioned_values};
use crate::parameter::parameters;
use crate::text::name_words;

/// Whether a text is a question about the world: not about the user, about things that are at hand, or about a
/// file or an address.
#[must_use]
pub fn is_world_question(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    let words = without_lead_in(&words);
    let asks = words.first().is_some_and(|word| {
        let word = word.trim_end_matches("'s");
        matches!(
            word,
            "what" | "who" | "whose" | "whom" | "when" | "where" | "which" | "why" | "how"
        )
    });
    let is_at_hand = words.iter().any(|word| {
        matches!(
            *word,
            "i" | "i'm"
                | "i've"
                | "me"
                | "my"
                | "mine"
                | "we"
                | "us"
                | "our"
                | "ours"
                | "you"
                | "your"
                | "it"
                | "this"
                | "these"
                | "those"
                | "here"
                | "attached"
                | "above"
                | "below"
                | "following"
        )
    });
    let is_about_data = || {
        let mut values = mentioned_values(text).into_iter();
        values.any(|value| {
            matches!(
                value.kind,
                ValueKind::Path
                    | ValueKind::Url
                    | ValueKind::Email
                    | ValueKind::Code
                    | ValueKind::List
            )
        })
    };
    asks && !is_at_hand && !content_words(text).is_empty() && !is_about_data()
}

/// The words of a question without what introduces it, such as "tell me".
fn without_lead_in<'w>(words: &'w [&'w str]) -> &'w [&'w str] {
    const LEAD_INS: [&[&str]; 5] = [
        &["please"],
        &["tell", "me"],
        &["do", "you", "know"],
        &["can", "you", "tell", "me"],
        &["i", "want", "to", "know"],
    ];
    let mut rest = words;
    while let Some(lead_in) = LEAD_INS.iter().find(|lead_in| rest.starts_with(lead_in)) {
        rest = &rest[lead_in.len()..];
    }
    rest
}

/// Whether a tool searches the web for a text.
#[must_use]
pub fn is_web_search(tool: &ToolView<'_>) -> bool {
    let name = name_words(tool.name);
    let description = tool.description.to_lowercase();
    let described: Vec<&str> = description.split(|c: char| !c.is_alphanumeric()).collect();
    let is_web = |word: &str| matches!(word, "web" | "internet" | "online");
    let searches = name.iter().any(|word| word == "search")
        && (name.iter().any(|word| is_web(word)) || described.iter().any(|word| is_web(word)));
    let required = parameters(tool.input_schema);
    let mut required = required.iter().filter(|parameter| parameter.required);
    searches && required.next().is_some() && required.next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn questions_about_the_world_are_distinguished_from_those_about_things_at_hand() {
        for question in [
            "What is the capital of France?",
            "Who wrote Faust?",
            "how tall is the Eiffel Tower",
            "Please tell me when the Berlin Wall fell.",
        ] {
            assert!(is_world_question(question), "{question}");
        }
        for other in [
            "What is in my inbox?",
            "What is the total of these numbers?",
            "What does notes/plan.txt say?",
            "How do I delete a file?",
            "Retrieve my stock portfolio performance for Q3 2024",
            "Translate this letter into French",
            "What?",
        ] {
            assert!(!is_world_question(other), "{other}");
        }
    }

    #[test]
    fn a_web_search_has_one_required_argument() {
        let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
        let tool = |name, description| ToolView {
            name,
            description,
            input_schema: &schema,
        };
        assert!(is_web_search(&tool("web_search", "Finds pages")));
        assert!(is_web_search(&tool("search", "Searches the web for pages")));
        assert!(!is_web_search(&tool(
            "search_memories",
            "Searches what was stored"
        )));
        assert!(!is_web_search(&tool(
            "web_crawl",
            "Reads a page of the web"
        )));
        let none = json!({"type": "object", "properties": {}});
        let tool = ToolView {
            name: "web_search",
            description: "Finds pages",
            input_schema: &none,
        };
        assert!(!is_web_search(&tool));
    }
}
