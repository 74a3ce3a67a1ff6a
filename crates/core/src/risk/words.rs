//! Splits names and descriptions into words: `deleteFile`, `delete-file` and `files.deleting` all
//! contain the word `delete`. A word is looked up by its base form. Its inflection is kept, because a
//! participle (`list_deleted_items`) describes a thing and a base form (`delete_items`) is an action.

use super::lexicon::{ActionKind, LEXICON, Verb, WordKind};

/// The maximum length of a name; the rest is ignored.
const MAX_NAME: usize = 256;

/// The inflection of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in the lexicon: `delete`.
    Base,
    /// With an s: `deletes`, or a plural.
    WithS,
    /// `deleted`, `sent`: a property, not an action.
    Participle,
    /// `deleting`.
    Gerund,
}

/// A word of a name or description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// In lower case, as written.
    pub(super) text: String,
    /// The base form if the lexicon has it; otherwise the word itself.
    pub(super) base: String,
    pub(super) form: Form,
    pub(super) verb: Option<Verb>,
}

impl Word {
    pub(super) fn new(text: String) -> Self {
        let (base, form) = reduce(&text);
        let verb = LEXICON.verb(&base).or_else(|| prefixed(&base));
        Self {
            text,
            base,
            form,
            verb,
        }
    }

    /// Whether it is a word of that kind, in singular or plural.
    pub(super) fn is(&self, kind: WordKind) -> bool {
        LEXICON.is(&self.base, kind) || LEXICON.is(&self.text, kind)
    }

    /// Whether it is a verb that is not also a noun.
    pub(super) fn is_plain_verb(&self) -> bool {
        self.verb.is_some_and(|verb| !verb.is_also_noun)
    }
}

/// The words of an identifier, in lower case.
pub(super) fn split_name(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = name.chars().take(MAX_NAME).peekable();
    let mut previous = Case::Other;
    while let Some(c) = chars.next() {
        let case = Case::of(c);
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let begins_word = match (previous, case) {
            (_, Case::Other) => true,
            (Case::Lower | Case::Digit, Case::Upper) => true,
            // The last capital of a sequence belongs to the next word: `HTTPRequest`.
            (Case::Upper, Case::Upper) => next_is_lower,
            (Case::Digit, Case::Lower) => false,
            _ => false,
        };
        if begins_word && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if case != Case::Other {
            word.extend(c.to_lowercase());
        }
        previous = case;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
    Digit,
    Other,
}

impl Case {
    fn of(c: char) -> Self {
        if c.is_uppercase() {
            Self::Upper
        } else if c.is_alphabetic() {
            Self::Lower
        } else if c.is_numeric() {
            Self::Digit
        } else {
            Self::Other
        }
    }
}

/// The base form of a word and its inflection. A word that the lexicon does not have stays as it is.
fn reduce(word: &str) -> (String, Form) {
    if let Some(form) = known(word, Form::Base) {
        return form;
    }
    if let Some(base) = LEXICON.irregular(word) {
        return (base.to_owned(), Form::Participle);
    }
    let found = [
        ("ies", "y", Form::WithS),
        ("es", "", Form::WithS),
        ("s", "", Form::WithS),
        ("ied", "y", Form::Participle),
        ("ed", "", Form::Participle),
        ("ed", "e", Form::Participle),
        ("ing", "", Form::Gerund),
        ("ing", "e", Form::Gerund),
    ]
    .into_iter()
    .find_map(|(ending, instead, form)| {
        let stem = word.strip_suffix(ending)?;
        known(&format!("{stem}{instead}"), form).or_else(|| {
            // `stopped`, `getting`: the consonant is doubled.
            let mut letters = stem.chars().rev();
            let doubled = form != Form::WithS
                && instead.is_empty()
                && letters
                    .next()
                    .is_some_and(|last| letters.next() == Some(last));
            let single = doubled.then(|| stem.char_indices().next_back()).flatten()?;
            known(&stem[..single.0], form)
        })
    });
    found.unwrap_or_else(|| (word.to_owned(), Form::Base))
}

/// The verb that a prefixed verb is made of: `unstar` changes something, `resend` sends.
fn prefixed(word: &str) -> Option<Verb> {
    let verb = |prefix| LEXICON.verb(word.strip_prefix(prefix)?);
    let undone = verb("un")
        .filter(|verb| verb.action != ActionKind::Read)
        .map(|verb| Verb {
            action: ActionKind::Change,
            ..verb
        });
    undone.or_else(|| verb("re"))
}

fn known(word: &str, form: Form) -> Option<(String, Form)> {
    LEXICON.knows(word).then(|| (word.to_owned(), form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_however_they_are_written() {
        for name in [
            "deleteFileNow",
            "delete_file_now",
            "delete-file-now",
            "Delete.File/Now",
            "DELETE_FILE_NOW",
            "delete__file  now",
        ] {
            assert_eq!(split_name(name), ["delete", "file", "now"], "{name}");
        }
        assert_eq!(split_name("sendHTTPRequest"), ["send", "http", "request"]);
        assert_eq!(split_name("s3PutObject"), ["s3", "put", "object"]);
        assert_eq!(split_name("getIBAN"), ["get", "iban"]);
        assert!(split_name("").is_empty());
        assert!(split_name("___").is_empty());
    }

    #[test]
    fn inflected_words_are_reduced_to_their_base() {
        for (word, base, form) in [
            ("deletes", "delete", Form::WithS),
            ("deleted", "delete", Form::Participle),
            ("deleting", "delete", Form::Gerund),
            ("removed", "remove", Form::Participle),
            ("stopping", "stop", Form::Gerund),
            ("stopped", "stop", Form::Participle),
            ("publishes", "publish", Form::WithS),
            ("copies", "copy", Form::WithS),
            ("modified", "modify", Form::Participle),
            ("queries", "query", Form::WithS),
            ("sent", "send", Form::Participle),
            ("passwords", "password", Form::WithS),
            ("status", "status", Form::Base),
            ("widgets", "widgets", Form::Base),
        ] {
            let found = Word::new(word.to_owned());
            assert_eq!((found.base.as_str(), found.form), (base, form), "{word}");
        }
    }
}
