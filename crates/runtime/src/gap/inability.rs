//! Detects answers that state that the task could not be done, and whether because a tool is missing. The
//! words of each sentence decide, and who lacks what. That no tool was needed, or that a program has no
//! function of some name, is not a gap.

/// The inability that an answer states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inability {
    /// It cannot do the task.
    Cannot,
    /// It cannot do the task because it has no tool for it.
    NoTool,
}

/// The inability that an answer states, if it states one.
pub(super) fn stated_inability(answer: &str) -> Option<Inability> {
    let answer = answer.to_lowercase().replace('’', "'");
    let sentences: Vec<Vec<&str>> = answer
        .split(['.', '!', '?', ';', ':', '\n'])
        .map(words)
        .collect();
    let any_sentence = |states: fn(&[&str]) -> bool| sentences.iter().any(|words| states(words));
    if any_sentence(lacks_tool) {
        Some(Inability::NoTool)
    } else {
        any_sentence(cannot).then_some(Inability::Cannot)
    }
}

fn words(sentence: &str) -> Vec<&str> {
    sentence
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
        .collect()
}

const SPEAKER: [&str; 5] = ["i", "i've", "i'm", "we", "we've"];

const NOT: [&str; 13] = [
    "not", "don't", "didn't", "doesn't", "haven't", "cannot", "can't", "couldn't", "wasn't",
    "lack", "lacks", "lacked", "never",
];

/// Whether a sentence states that the speaker cannot do something. "I cannot find" or "I cannot see" is the
/// result of a search and does not count.
fn cannot(words: &[&str]) -> bool {
    const FINDINGS: [&str; 9] = [
        "find",
        "see",
        "detect",
        "spot",
        "notice",
        "identify",
        "recommend",
        "stress",
        "wait",
    ];
    let is_of_task = |rest: &[&str]| rest.first().is_none_or(|verb| !FINDINGS.contains(verb));
    (0..words.len()).any(|place| match &words[place..] {
        ["i" | "we", "cannot" | "can't" | "couldn't", rest @ ..]
        | ["i" | "we", "can" | "could", "not", rest @ ..] => is_of_task(rest),
        ["i" | "we", "am" | "are" | "was" | "were", "unable", ..]
        | ["i'm" | "we're", "unable", ..]
        | ["i" | "we", "am" | "are" | "was" | "were", "not", "able", ..]
        | ["i'm" | "we're", "not", "able", ..]
        | ["i", "wasn't", "able", ..] => true,
        _ => false,
    })
}

/// Whether a sentence states that the speaker has no tool for something.
fn lacks_tool(words: &[&str]) -> bool {
    (0..words.len()).any(|place| {
        let noun = match words[place] {
            "tool" | "tools" => Noun::Tool,
            "function" | "functions" => Noun::Function,
            _ => return false,
        };
        // `no suitable booking tool`: the determiner is up to three words before.
        const WHICH: [&str; 8] = ["no", "a", "an", "any", "the", "my", "these", "those"];
        let reach = place.saturating_sub(3)..place;
        let Some(which) = reach.rev().find(|at| WHICH.contains(&words[*at])) else {
            return false;
        };
        let mention = Mention {
            noun,
            before: &words[..which],
            which: words[which],
            like: &words[which + 1..place],
            after: &words[place + 1..],
        };
        !mention.is_about_need() && mention.is_lack()
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noun {
    Tool,
    /// Programs have functions as well, so this noun needs more evidence.
    Function,
}

/// A mention of a tool in a sentence.
struct Mention<'w> {
    noun: Noun,
    before: &'w [&'w str],
    /// `no`, `any`, `my`.
    which: &'w str,
    /// `suitable`.
    like: &'w [&'w str],
    after: &'w [&'w str],
}

impl Mention<'_> {
    /// Whether it is about tools being needed or used, or not.
    fn is_about_need(&self) -> bool {
        const NEED: [&str; 9] = [
            "need",
            "needed",
            "required",
            "require",
            "necessary",
            "used",
            "called",
            "call",
            "involved",
        ];
        let next = self.after.iter().take(3);
        next.chain(self.like).any(|word| NEED.contains(word))
    }

    fn is_lack(&self) -> bool {
        match self.which {
            "no" => self.is_none(),
            "my" => self.is_none_of() || self.is_negated_after(),
            _ => self.is_none_of() || self.is_not_had(),
        }
    }

    /// `I have no tool`, `there is no tool that`, `no tool can`.
    fn is_none(&self) -> bool {
        if self.is_first_person() {
            return true;
        }
        const FITTING: [&str; 5] = ["available", "suitable", "appropriate", "matching", "such"];
        let is_fitting = self.like.iter().any(|word| FITTING.contains(word));
        if self.noun == Noun::Function && !is_fitting {
            return false;
        }
        match self.after {
            [] => is_fitting || self.is_there(),
            [be @ ("is" | "was" | "are" | "were" | "seems"), rest @ ..] => {
                let able = [
                    "available",
                    "able",
                    "there",
                    "suitable",
                    "provided",
                    "capable",
                ];
                *be == "seems" || rest.first().is_some_and(|word| able.contains(word))
            }
            [first, ..] => [
                "that",
                "which",
                "to",
                "for",
                "available",
                "here",
                "can",
                "could",
                "does",
                "do",
                "exists",
                "exist",
                "fits",
                "fit",
                "lets",
                "allows",
                "allow",
                "supports",
                "i",
                "capable",
                "able",
                "among",
            ]
            .contains(first),
        }
    }

    /// `None of my tools`, `with any of the tools I cannot`.
    fn is_none_of(&self) -> bool {
        let is_whose = self.noun == Noun::Tool || self.which == "my";
        match self.before {
            [.., "none", "of"] => is_whose,
            [.., "any", "of"] => is_whose && cannot(self.before),
            _ => false,
        }
    }

    /// `My tools cannot`.
    fn is_negated_after(&self) -> bool {
        match self.after {
            ["do" | "can" | "could", "not", ..] => true,
            [first, ..] => ["don't", "cannot", "can't", "couldn't", "lack"].contains(first),
            [] => false,
        }
    }

    /// `I do not have a tool`, `I lack the tools`, `I cannot do that without a tool`.
    fn is_not_had(&self) -> bool {
        const HAVING: [&str; 9] = [
            "have", "has", "had", "find", "found", "see", "lack", "lacks", "lacked",
        ];
        match self.before {
            [.., "without"] => cannot(self.before),
            [.., "access", "to"] | [.., "given" | "provided", "with"] => {
                self.is_negated_first_person()
            }
            [.., last] => HAVING.contains(last) && self.is_negated_first_person(),
            [] => false,
        }
    }

    fn is_negated_first_person(&self) -> bool {
        self.is_first_person() && self.nearby().any(|word| NOT.contains(word))
    }

    fn is_first_person(&self) -> bool {
        self.nearby().any(|word| SPEAKER.contains(word))
    }

    fn is_there(&self) -> bool {
        self.nearby()
            .any(|word| matches!(*word, "there" | "there's"))
    }

    /// The words just before it.
    fn nearby(&self) -> impl Iterator<Item = &&str> {
        self.before.iter().rev().take(6)
    }
}
