//! What the name and the description of a tool say about what it does.
//!
//! The name outranks the description: names are short and chosen, descriptions are prose. A
//! description speaks where the name is silent, and it raises what the name says where it begins
//! with a graver deed or warns that something cannot be undone.

use windlass_spec::RiskLevel;

use super::lexicon::{Deed, Kind, LEXICON};
use super::words::{Form, Word, split_name};

/// Descriptions are read this far; the deed stands at the beginning.
const MAX_DESCRIPTION: usize = 4096;
/// The first sentence of a description is read this far.
const MAX_LEAD: usize = 40;
/// A deed that a description begins with stands among its first words.
const MAX_LEAD_IN: usize = 12;

/// What words say about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) level: RiskLevel,
    /// Which words said it, for people.
    pub(super) what: String,
}

impl Reading {
    fn new(level: RiskLevel, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { level, what }
    }
}

/// What a name and a description say together; `None` if neither says anything.
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

/// The level of what a name alone says: of an operation in an argument, a function in a query, a
/// word of a command.
pub(super) fn read_operation(name: &str) -> Option<RiskLevel> {
    let reading = read_words(&words_of_name(name), &Description::default())?;
    Some(reading.level)
}

/// What the name of a flag says is done when it is set: `delete_source`, not `include_deleted`.
/// Only plain verbs count, because flags are often named by things.
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

fn level_of(deed: Deed) -> RiskLevel {
    match deed {
        Deed::Read => RiskLevel::Reversible,
        Deed::Change | Deed::Run => RiskLevel::ReversibleWithDelay,
        Deed::Final => RiskLevel::Irreversible,
    }
}

fn read_words(words: &[Word], description: &Description) -> Option<Reading> {
    if let Some((phrase, deed)) = phrase_in(words) {
        let what = format!("the name says `{phrase}`");
        return Some(Reading::new(level_of(deed), what));
    }
    let Some(head) = head_of(words) else {
        let noun = words.iter().rfind(|word| word.is(Kind::ReadNoun))?;
        let what = format!("the name says `{}`", noun.text);
        return Some(Reading::new(RiskLevel::Reversible, what));
    };
    let by_head = read_deed(head, words, description);
    // The first of the worst, so that the reason is the plainest one.
    let worst = joined_verbs(head, words)
        .map(|other| read_deed(other, words, description))
        .fold(by_head, |worst, other| {
            if other.level > worst.level {
                other
            } else {
                worst
            }
        });
    Some(worst)
}

fn phrase_in(words: &[Word]) -> Option<(String, Deed)> {
    LEXICON.phrases.iter().find_map(|(phrase, deed)| {
        let fits = |window: &[Word]| {
            window
                .iter()
                .zip(phrase)
                .all(|(word, part)| word.text == *part)
        };
        let found = words.windows(phrase.len()).any(fits);
        found.then(|| (phrase.join(" "), *deed))
    })
}

/// The place of the word that says what is done: the first plain verb, else the first word that may
/// be one. In base form if there is such a word, because other forms describe things.
fn head_of(words: &[Word]) -> Option<usize> {
    let is_deed = |word: &Word| word.form == Form::Base;
    let plain = words
        .iter()
        .position(|word| word.is_plain_verb() && is_deed(word));
    // In `run_query` the query is what is run.
    let run = words
        .iter()
        .position(|word| word.verb.is_some_and(|verb| verb.deed == Deed::Run) && is_deed(word));
    let plain = match (run, plain) {
        (Some(run), Some(plain)) if run < plain && words[plain].is(Kind::Code) => Some(run),
        _ => plain,
    };
    // A name may also begin with `deletes` or `deleting`.
    let inflected_first = words
        .first()
        .filter(|word| word.is_plain_verb() && word.form != Form::Participle)
        .map(|_| 0);
    // After another word, `log` and `status` are what is looked at: `git_log`, not `log_expense`.
    let maybe = words.iter().enumerate().position(|(place, word)| {
        let thing = place > 0 && word.is(Kind::ReadNoun);
        word.verb.is_some() && is_deed(word) && !thing
    });
    let inflected = words.iter().position(|word| {
        word.is_plain_verb() && matches!(word.form, Form::Gerund | Form::Participle)
    });
    inflected_first.or(plain).or(maybe).or(inflected)
}

/// The places of verbs that are done as well as the head: after `and` and `or`, and at the end of a
/// name whose head may be a thing.
fn joined_verbs(head: usize, words: &[Word]) -> impl Iterator<Item = usize> {
    let head_may_be_thing = words[head].is(Kind::ReadAsThing);
    let last = words.len() - 1;
    (0..words.len()).filter(move |&place| {
        let word = &words[place];
        let deed = word.verb.is_some() && word.form == Form::Base && place != head;
        let joined = place > 0 && matches!(words[place - 1].text.as_str(), "and" | "or" | "then");
        let final_verb = place == last && head_may_be_thing && word.is_plain_verb();
        deed && (joined || final_verb)
    })
}

/// What the verb at `place` says, given what it is done to.
fn read_deed(place: usize, words: &[Word], description: &Description) -> Reading {
    let word = &words[place];
    let deed = word.verb.map_or(Deed::Final, |verb| verb.deed);
    let rest = &words[place + 1..];
    let said = |object: &Word| format!("the name says `{} {}`", word.text, object.text);
    let object = |kind| rest.iter().find(|word| word.is(kind));
    let any = |kind| words.iter().find(|word| word.is(kind));

    let asks_only = any(Kind::Question).is_some() && description.is_harmless();
    if matches!(word.base.as_str(), "execute" | "exec" | "run") && asks_only {
        let what = format!(
            "the name says `{}`, the description that it only reads",
            word.text
        );
        return Reading::new(RiskLevel::Reversible, what);
    }
    let hardened = words.iter().find(|word| word.is(Kind::Hardening));
    let sends = matches!(word.base.as_str(), "send" | "submit" | "dispatch" | "start");
    let grave_object = match deed {
        Deed::Read if word.base == "format" => object(Kind::Disk),
        Deed::Read if word.base == "capture" => object(Kind::Money),
        Deed::Read | Deed::Final => None,
        Deed::Run => any(Kind::Code).or_else(|| description.lead_word(Kind::Code)),
        Deed::Change if matches!(word.base.as_str(), "book" | "checkout") => {
            object(Kind::PaidFor).or_else(|| object(Kind::Money))
        }
        Deed::Change => object(Kind::FinalAsNoun)
            .or_else(|| object(Kind::Secret).filter(|_| changes_in_place(word)))
            .or_else(|| money_moved(word, rest))
            .or_else(|| rest.last().filter(|word| word.is(Kind::Code) && sends))
            .or(hardened),
    };
    match grave_object {
        Some(object) => Reading::new(RiskLevel::Irreversible, said(object)),
        None => Reading::new(level_of(deed), format!("the name says `{}`", word.text)),
    }
}

fn changes_in_place(word: &Word) -> bool {
    !matches!(word.base.as_str(), "create" | "add" | "generate" | "send")
}

/// Money among the objects of a verb. To create something that only begins with a word for money (a
/// payment link, an order template) moves none, but to confirm or submit it does.
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
        .find(|word| word.is(Kind::Money))
        .filter(|_| moves);
    any.or(last.filter(|word| word.is(Kind::Money)))
}

fn raised_by_description(reading: Reading, name: &[Word], description: &Description) -> Reading {
    let head = head_of(name).map(|place| name[place].base.as_str());
    let raise = description.deeds().into_iter().find(|word| {
        let said_already = head == Some(word.base.as_str());
        // `Removes a label` is how taking something off is described, not that it is lost.
        let mild = word.base == "remove" && reading.level == RiskLevel::ReversibleWithDelay;
        let level = word.verb.map_or(reading.level, |verb| level_of(verb.deed));
        let carries = word.is(Kind::Carrier);
        word.is_plain_verb() && !said_already && !mild && !carries && level > reading.level
    });
    match raise.and_then(|word| Some((word, word.verb?))) {
        Some((word, verb)) => Reading::new(
            level_of(verb.deed),
            format!(
                "{}; the description begins with `{}`",
                reading.what, word.text
            ),
        ),
        None => reading,
    }
}

/// A description as words: all of them for phrases, those of its first sentence for deeds.
#[derive(Debug, Default)]
struct Description {
    /// All words, in lower case, with one blank before and after each.
    text: String,
    /// The words of the first sentence; a comma is a word too.
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

    /// What is done according to the beginning: its first verb and those that are joined to it.
    fn deeds(&self) -> Vec<&Word> {
        let skipped = self
            .lead
            .iter()
            .take_while(|word| {
                word.is(Kind::LeadIn) || word.text.ends_with("ly") || word.text == ","
            })
            .count();
        let Some(first) = self.lead.get(skipped).filter(|word| {
            word.verb.is_some() && word.form != Form::Participle && skipped <= MAX_LEAD_IN
        }) else {
            return Vec::new();
        };
        let mut deeds = vec![first];
        // "Create, change or delete records" is a row of deeds from the beginning. Further on only
        // `and` and `or` join deeds, for commas also join things.
        let mut in_row = true;
        let mut comma = false;
        let mut joined = false;
        let rest = &self.lead[skipped + 1..];
        for (place, word) in rest.iter().enumerate() {
            let deed = word.verb.is_some() && word.form == first.form;
            let has_object = rest
                .get(place + 1)
                .is_some_and(|next| !next.is(Kind::Preposition));
            match word.text.as_str() {
                "and" | "or" | "then" => joined = true,
                "," => comma = true,
                text if text.ends_with("ly") || text == "also" => {}
                _ => {
                    let next_in_row = in_row && (comma || joined);
                    if deed && (next_in_row || joined && has_object) {
                        deeds.push(word);
                    } else {
                        in_row = false;
                    }
                    (comma, joined) = (false, false);
                }
            }
        }
        deeds
    }

    /// What the beginning says by itself, for a name that says nothing.
    fn lead(&self) -> Option<Reading> {
        let worst = self
            .deeds()
            .into_iter()
            .filter_map(|word| Some((word, word.verb?)))
            .max_by_key(|(_, verb)| verb.deed)?;
        let (word, verb) = worst;
        let runs_code = verb.deed == Deed::Run && self.lead_word(Kind::Code).is_some();
        let level = if runs_code && !self.is_harmless() {
            RiskLevel::Irreversible
        } else if runs_code {
            RiskLevel::Reversible
        } else {
            level_of(verb.deed)
        };
        let what = format!("the description begins with `{}`", word.text);
        Some(Reading::new(level, what))
    }

    fn lead_word(&self, kind: Kind) -> Option<&Word> {
        self.lead.iter().find(|word| word.is(kind))
    }

    fn is_harmless(&self) -> bool {
        LEXICON
            .harmless
            .iter()
            .any(|phrase| self.place_of(phrase).is_some_and(|at| !self.taken_back(at)))
    }

    /// The phrase by which the description warns. What a reading tool finds may be "permanently
    /// deleted" by others, so there the word must stand before a deed.
    fn grave_phrase(&self, level: RiskLevel) -> Option<&'static str> {
        LEXICON.grave.iter().copied().find(|phrase| {
            self.place_of(phrase).is_some_and(|at| {
                let next = self.text[at + phrase.len() + 1..].split(' ').nth(1);
                let describes =
                    next.is_some_and(|next| Word::new(next.to_owned()).form == Form::Participle);
                !self.taken_back(at) && (level > RiskLevel::Reversible || !describes)
            })
        })
    }

    /// Where a phrase stands in the text, as whole words.
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

    fn taken_back(&self, at: usize) -> bool {
        self.text[..at]
            .rsplit(' ')
            .take(3)
            .any(|word| LEXICON.is(word, Kind::TakenBack))
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
