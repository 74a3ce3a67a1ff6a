//! Reads from the name and the description of a tool what it does.
//!
//! The name takes precedence over the description, because names are short and deliberate and
//! descriptions are prose. The description decides where the name says nothing. It raises the level of
//! the name where it starts with a graver action or warns that something cannot be undone.

use windlass_spec::RiskLevel;

use super::lexicon::{ActionKind, LEXICON, WordKind};
use super::words::{Form, Word, split_name};

/// The maximum length of a description that is read; the action is at the beginning.
const MAX_DESCRIPTION: usize = 4096;
/// The maximum number of words of the first sentence that are read.
const MAX_LEAD: usize = 40;
/// The maximum number of words before the first verb of a description.
const MAX_LEAD_IN: usize = 12;

/// The risk level that words indicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) level: RiskLevel,
    /// The words that indicate it, for people.
    pub(super) what: String,
}

impl Reading {
    fn new(level: RiskLevel, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { level, what }
    }
}

/// Reads a name and a description together; `None` if neither says anything.
pub(super) fn read(name: &str, description: &str) -> Option<Reading> {
    let name = words_of_name(name);
    let description = Description::new(description);
    let by_name = read_words(&name, &description);
    let reading = match by_name {
        Some(reading) => raised_by_description(reading, &name, &description),
        None => description.lead()?,
    };
    let grave = description.grave_phrase(reading.level);
    Some(match grave {
        Some(phrase) if reading.level < RiskLevel::Irreversible => Reading::new(
            RiskLevel::Irreversible,
            format!("{}; the description says `{phrase}`", reading.what),
        ),
        _ => reading,
    })
}

/// Reads the level of a name alone: an operation in an argument, a function in a query, a word of a
/// command.
pub(super) fn read_operation(name: &str) -> Option<RiskLevel> {
    let reading = read_words(&words_of_name(name), &Description::default())?;
    Some(reading.level)
}

/// Reads what a flag does when it is set: `delete_source`, not `include_deleted`. Only plain verbs
/// count, because flags are often named after things.
pub(super) fn read_flag(name: &str) -> Option<Reading> {
    let words = words_of_name(name);
    let first = words.first()?;
    (first.is_plain_verb() && first.form == Form::Base)
        .then(|| read_words(&words, &Description::default()))
        .flatten()
}

fn words_of_name(name: &str) -> Vec<Word> {
    split_name(name).into_iter().map(Word::new).collect()
}

fn level_of(action: ActionKind) -> RiskLevel {
    match action {
        ActionKind::Read => RiskLevel::Reversible,
        ActionKind::Change | ActionKind::Run => RiskLevel::ReversibleWithDelay,
        ActionKind::Final => RiskLevel::Irreversible,
    }
}

fn read_words(words: &[Word], description: &Description) -> Option<Reading> {
    if let Some((phrase, action)) = phrase_in(words) {
        let what = format!("the name says `{phrase}`");
        return Some(Reading::new(level_of(action), what));
    }
    let Some(head) = head_of(words) else {
        let noun = words.iter().rfind(|word| word.is(WordKind::ReadNoun))?;
        let what = format!("the name says `{}`", noun.text);
        return Some(Reading::new(RiskLevel::Reversible, what));
    };
    let by_head = read_action(head, words, description);
    // The first of the worst, so that the reason is the simplest one.
    let worst = joined_verbs(head, words)
        .map(|other| read_action(other, words, description))
        .fold(by_head, |worst, other| {
            if other.level > worst.level {
                other
            } else {
                worst
            }
        });
    Some(worst)
}

fn phrase_in(words: &[Word]) -> Option<(String, ActionKind)> {
    LEXICON.phrases.iter().find_map(|(phrase, action)| {
        let fits = |window: &[Word]| {
            window
                .iter()
                .zip(phrase)
                .all(|(word, part)| word.text == *part)
        };
        let found = words.windows(phrase.len()).any(fits);
        found.then(|| (phrase.join(" "), *action))
    })
}

/// The index of the verb of a name: the first plain verb, else the first word that may be one. Base
/// forms take precedence, because other forms describe things.
fn head_of(words: &[Word]) -> Option<usize> {
    let is_base_form = |word: &Word| word.form == Form::Base;
    let plain = words
        .iter()
        .position(|word| word.is_plain_verb() && is_base_form(word));
    // In `run_query` the query is the object of `run`.
    let run = words.iter().position(|word| {
        word.verb.is_some_and(|verb| verb.action == ActionKind::Run) && is_base_form(word)
    });
    let plain = match (run, plain) {
        (Some(run), Some(plain)) if run < plain && words[plain].is(WordKind::Code) => Some(run),
        _ => plain,
    };
    // A name may also start with `deletes` or `deleting`.
    let inflected_first = words
        .first()
        .filter(|word| word.is_plain_verb() && word.form != Form::Participle)
        .map(|_| 0);
    // After another word, `log` and `status` are nouns: `git_log`, but not `log_expense`.
    let maybe = words.iter().enumerate().position(|(place, word)| {
        let thing = place > 0 && word.is(WordKind::ReadNoun);
        word.verb.is_some() && is_base_form(word) && !thing
    });
    let inflected = words.iter().position(|word| {
        word.is_plain_verb() && matches!(word.form, Form::Gerund | Form::Participle)
    });
    inflected_first.or(plain).or(maybe).or(inflected)
}

/// The indices of further verbs: after `and` and `or`, and at the end of a name whose head may be a
/// noun.
fn joined_verbs(head: usize, words: &[Word]) -> impl Iterator<Item = usize> {
    let head_may_be_thing = words[head].is(WordKind::ReadAsThing);
    let last = words.len() - 1;
    (0..words.len()).filter(move |&place| {
        let word = &words[place];
        let action = word.verb.is_some() && word.form == Form::Base && place != head;
        let joined = place > 0 && matches!(words[place - 1].text.as_str(), "and" | "or" | "then");
        let final_verb = place == last && head_may_be_thing && word.is_plain_verb();
        action && (joined || final_verb)
    })
}

/// The reading of the verb at `place`, given its objects.
fn read_action(place: usize, words: &[Word], description: &Description) -> Reading {
    let word = &words[place];
    let action = word.verb.map_or(ActionKind::Final, |verb| verb.action);
    let rest = &words[place + 1..];
    let describe = |object: &Word| format!("the name says `{} {}`", word.text, object.text);
    let object = |kind| rest.iter().find(|word| word.is(kind));
    let any = |kind| words.iter().find(|word| word.is(kind));

    let asks_only = any(WordKind::Question).is_some() && description.is_harmless();
    if matches!(word.base.as_str(), "execute" | "exec" | "run") && asks_only {
        let what = format!(
            "the name says `{}`, the description that it only reads",
            word.text
        );
        return Reading::new(RiskLevel::Reversible, what);
    }
    let hardened = words.iter().find(|word| word.is(WordKind::Hardening));
    let sends = matches!(word.base.as_str(), "send" | "submit" | "dispatch" | "start");
    let grave_object = match action {
        ActionKind::Read if word.base == "format" => object(WordKind::Disk),
        ActionKind::Read if word.base == "capture" => object(WordKind::Money),
        ActionKind::Read | ActionKind::Final => None,
        ActionKind::Run => any(WordKind::Code).or_else(|| description.lead_word(WordKind::Code)),
        ActionKind::Change if matches!(word.base.as_str(), "book" | "checkout") => {
            object(WordKind::PaidFor).or_else(|| object(WordKind::Money))
        }
        ActionKind::Change => object(WordKind::FinalAsNoun)
            .or_else(|| object(WordKind::Secret).filter(|_| changes_in_place(word)))
            .or_else(|| money_moved(word, rest))
            .or_else(|| rest.last().filter(|word| word.is(WordKind::Code) && sends))
            .or(hardened),
    };
    match grave_object {
        Some(object) => Reading::new(RiskLevel::Irreversible, describe(object)),
        None => Reading::new(level_of(action), format!("the name says `{}`", word.text)),
    }
}

fn changes_in_place(word: &Word) -> bool {
    !matches!(word.base.as_str(), "create" | "add" | "generate" | "send")
}

/// The money that a verb moves. Creating something that only starts with a word for money (a payment
/// link, an order template) moves none; confirming or submitting it does.
fn money_moved<'w>(word: &Word, rest: &'w [Word]) -> Option<&'w Word> {
    let moves = matches!(
        word.base.as_str(),
        "accept"
            | "approve"
            | "authorise"
            | "authorize"
            | "complete"
            | "confirm"
            | "initiate"
            | "issue"
            | "make"
            | "place"
            | "process"
            | "schedule"
            | "send"
            | "submit"
    );
    let creates = matches!(
        word.base.as_str(),
        "create" | "add" | "post" | "request" | "insert"
    );
    let last = rest.last().filter(|_| creates);
    let any = rest
        .iter()
        .find(|word| word.is(WordKind::Money))
        .filter(|_| moves);
    any.or(last.filter(|word| word.is(WordKind::Money)))
}

fn raised_by_description(reading: Reading, name: &[Word], description: &Description) -> Reading {
    let head = head_of(name).map(|place| name[place].base.as_str());
    let raise = description.actions().into_iter().find(|word| {
        let is_in_name = head == Some(word.base.as_str());
        // `Removes a label` describes detaching something, not losing it.
        let mild = word.base == "remove" && reading.level == RiskLevel::ReversibleWithDelay;
        let level = word
            .verb
            .map_or(reading.level, |verb| level_of(verb.action));
        let carries = word.is(WordKind::Carrier);
        word.is_plain_verb() && !is_in_name && !mild && !carries && level > reading.level
    });
    match raise.and_then(|word| Some((word, word.verb?))) {
        Some((word, verb)) => Reading::new(
            level_of(verb.action),
            format!(
                "{}; the description begins with `{}`",
                reading.what, word.text
            ),
        ),
        None => reading,
    }
}

/// A description as words: all of them for phrases, those of the first sentence for actions.
#[derive(Debug, Default)]
struct Description {
    /// All words in lower case, each with one space before and after it.
    text: String,
    /// The words of the first sentence; a comma counts as a word.
    lead: Vec<Word>,
}

impl Description {
    fn new(description: &str) -> Self {
        let end = description
            .char_indices()
            .nth(MAX_DESCRIPTION)
            .map_or(description.len(), |(end, _)| end);
        let description = &description[..end];
        let mut text = String::with_capacity(description.len() + 2);
        text.push(' ');
        for word in description
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            text.extend(word.chars().flat_map(char::to_lowercase));
            text.push(' ');
        }
        Self {
            text,
            lead: lead_words(description),
        }
    }

    /// The actions at the beginning: the first verb and the verbs joined to it.
    fn actions(&self) -> Vec<&Word> {
        let skipped = self
            .lead
            .iter()
            .take_while(|word| {
                word.is(WordKind::LeadIn) || word.text.ends_with("ly") || word.text == ","
            })
            .count();
        let Some(first) = self.lead.get(skipped).filter(|word| {
            word.verb.is_some() && word.form != Form::Participle && skipped <= MAX_LEAD_IN
        }) else {
            return Vec::new();
        };
        let mut actions = vec![first];
        // "Create, change or delete records" is a list of actions. Later in the sentence only `and` and
        // `or` join actions, because commas also join nouns.
        let mut in_row = true;
        let mut comma = false;
        let mut joined = false;
        let rest = &self.lead[skipped + 1..];
        for (place, word) in rest.iter().enumerate() {
            let action = word.verb.is_some() && word.form == first.form;
            let has_object = rest
                .get(place + 1)
                .is_some_and(|next| !next.is(WordKind::Preposition));
            match word.text.as_str() {
                "and" | "or" | "then" => joined = true,
                "," => comma = true,
                text if text.ends_with("ly") || text == "also" => {}
                _ => {
                    let next_in_row = in_row && (comma || joined);
                    if action && (next_in_row || joined && has_object) {
                        actions.push(word);
                    } else {
                        in_row = false;
                    }
                    (comma, joined) = (false, false);
                }
            }
        }
        actions
    }

    /// The reading of the beginning alone, for a name that says nothing.
    fn lead(&self) -> Option<Reading> {
        let worst = self
            .actions()
            .into_iter()
            .filter_map(|word| Some((word, word.verb?)))
            .max_by_key(|(_, verb)| verb.action)?;
        let (word, verb) = worst;
        let runs_code = verb.action == ActionKind::Run && self.lead_word(WordKind::Code).is_some();
        let level = if runs_code && !self.is_harmless() {
            RiskLevel::Irreversible
        } else if runs_code {
            RiskLevel::Reversible
        } else {
            level_of(verb.action)
        };
        let what = format!("the description begins with `{}`", word.text);
        Some(Reading::new(level, what))
    }

    fn lead_word(&self, kind: WordKind) -> Option<&Word> {
        self.lead.iter().find(|word| word.is(kind))
    }

    fn is_harmless(&self) -> bool {
        LEXICON
            .harmless
            .iter()
            .any(|phrase| self.place_of(phrase).is_some_and(|at| !self.is_negated(at)))
    }

    /// The phrase by which the description warns. Something that a reading tool finds may be
    /// "permanently deleted" by others, so there the word must precede a verb.
    fn grave_phrase(&self, level: RiskLevel) -> Option<&'static str> {
        LEXICON.grave.iter().copied().find(|phrase| {
            self.place_of(phrase).is_some_and(|at| {
                let next = self.text[at + phrase.len() + 1..].split(' ').nth(1);
                let describes =
                    next.is_some_and(|next| Word::new(next.to_owned()).form == Form::Participle);
                !self.is_negated(at) && (level > RiskLevel::Reversible || !describes)
            })
        })
    }

    /// The position of a phrase in the text, as whole words.
    fn place_of(&self, phrase: &str) -> Option<usize> {
        self.text
            .match_indices(phrase)
            .map(|(at, _)| at)
            .find(|&at| {
                let before = self.text[..at].ends_with(' ');
                let after = self.text[at + phrase.len()..].starts_with(' ');
                before && after
            })
            .map(|at| at - 1)
    }

    fn is_negated(&self, at: usize) -> bool {
        self.text[..at]
            .rsplit(' ')
            .take(3)
            .any(|word| LEXICON.is(word, WordKind::TakenBack))
    }
}

/// The words of the first sentence.
fn lead_words(description: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = description.trim_start();
    while !rest.is_empty() && words.len() < MAX_LEAD {
        let end = rest
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(rest.len());
        if end > 0 {
            words.push(Word::new(rest[..end].to_lowercase()));
        }
        let between = &rest[end..];
        let next = between.find(char::is_alphanumeric).unwrap_or(between.len());
        let gap = &between[..next];
        if gap.contains(['\n', ';']) || gap.contains(". ") || gap.contains(": ") {
            break;
        }
        if gap.contains([',', '/']) {
            words.push(Word::new(",".to_owned()));
        }
        rest = &between[next..];
    }
    words
}
