//! The arms of the benchmark. Each gives the policy other advice: none, advice learned from runs of other tasks,
//! or a control that only looks like it. An arm learns once from the runs of the training tasks and then
//! gives lines for each turn of a task. The lines go into the field `strategies` of a task and reach the policy in
//! the prompt.

use std::collections::{BTreeSet, HashMap};

use windlass_core::run::Run;
use windlass_embed::{Embedding, StaticEmbedder};

use crate::book;
use crate::random::{Random, seeded};
use crate::tasks::Task;

/// The turn of a task that advice is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct TurnContext<'t> {
    /// The task. Arms must not use its expected calls.
    pub task: &'t Task,
    /// The turn, from 0.
    pub turn: usize,
    /// The tools of the agent.
    pub tools: &'t [String],
}

impl<'t> TurnContext<'t> {
    /// The text of the user.
    pub fn text(&self) -> &'t str {
        &self.task.turns[self.turn]
    }
}

/// The advice of an arm.
pub trait Advice: Send + Sync {
    /// The lines for a turn, the best first.
    fn lines(&self, turn: &TurnContext<'_>) -> Vec<String>;
}

impl<F: Fn(&TurnContext<'_>) -> Vec<String> + Send + Sync> Advice for F {
    fn lines(&self, turn: &TurnContext<'_>) -> Vec<String> {
        self(turn)
    }
}

/// The training data of an arm.
#[derive(Debug, Clone)]
pub struct Training<'t> {
    /// The seed of random choices.
    pub seed: u64,
    /// The test fold.
    #[allow(dead_code, reason = "for arms that cache what they learned")]
    pub fold: usize,
    /// The turns of the training tasks, in the order of the tasks.
    pub turns: Vec<TrainingTurn<'t>>,
}

/// A run to learn from.
#[derive(Debug, Clone, Copy)]
pub struct TrainingTurn<'t> {
    /// Its task. Arms must not use its expected calls.
    pub task: &'t Task,
    /// The turn, from 0.
    pub turn: usize,
    /// The run.
    pub run: &'t Run,
    /// Whether the task was solved in the end.
    #[allow(dead_code, reason = "for arms that learn from how tasks ended")]
    pub is_success: bool,
}

impl<'t> TrainingTurn<'t> {
    /// The text of the user.
    pub fn text(&self) -> &'t str {
        &self.task.turns[self.turn]
    }

    /// The tools of the calls that succeeded, in order.
    pub fn sequence(&self) -> Vec<&'t str> {
        let succeeded = self
            .run
            .calls()
            .filter(|call| matches!(call.outcome(), Some(Ok(_))));
        succeeded.map(|call| call.tool_name().as_str()).collect()
    }
}

/// A source of advice.
pub trait Arm: Sync {
    /// The name in the results.
    fn name(&self) -> String;

    /// Learns from the training data and returns the advice.
    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't>;

    /// Whether it also learns from the test tasks. Only a control may.
    fn leaks(&self) -> bool {
        false
    }
}

/// The baseline: no advice.
pub struct NoAdvice;

impl Arm for NoAdvice {
    fn name(&self) -> String {
        "none".to_owned()
    }

    fn learn<'t>(&self, _: &Training<'t>) -> Box<dyn Advice + 't> {
        Box::new(|_: &TurnContext<'_>| Vec::new())
    }
}

/// Names the tools that succeeded most often in training, independent of the turn.
pub struct Frequency {
    /// How many lines it gives.
    pub k: usize,
}

impl Arm for Frequency {
    fn name(&self) -> String {
        format!("frequency prior, {} tools", self.k)
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for turn in &training.turns {
            for tool in turn.sequence() {
                *counts.entry(tool).or_default() += 1;
            }
        }
        let mut ranked: Vec<(&'t str, usize)> = counts.into_iter().collect();
        ranked.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let k = self.k;
        Box::new(move |turn: &TurnContext<'_>| {
            let known = ranked
                .iter()
                .filter(|(tool, _)| turn.tools.iter().any(|own| own == tool));
            let lines = known
                .take(k)
                .map(|(tool, _)| format!("Often used: `{tool}`."));
            lines.collect()
        })
    }
}

/// Gives the traces of the training turns with the most similar texts, without reflection, merging or counting. A
/// playbook must be better than this.
pub struct Nearest {
    /// How many lines it gives.
    pub k: usize,
    /// Whether traces are filtered as in the playbook: only the domain, available tools and successful runs,
    /// without calls that had no use.
    pub is_filtered: bool,
}

struct Trace<'t> {
    domain: &'t str,
    sequence: Vec<String>,
    meaning: Embedding,
    line: String,
}

impl Nearest {
    fn trace<'t>(&self, turn: &TrainingTurn<'t>, embedder: &StaticEmbedder) -> Option<Trace<'t>> {
        let sequence = match self.is_filtered {
            false => turn.sequence().into_iter().map(str::to_owned).collect(),
            true => book::useful_sequence(turn.run)?,
        };
        let names: Vec<&str> = sequence.iter().map(String::as_str).collect();
        Some(Trace {
            domain: turn.task.domain(),
            line: strategy_line(turn.text(), &names)?,
            meaning: embedder.embed(turn.text()),
            sequence,
        })
    }

    fn fits(&self, trace: &Trace<'_>, turn: &TurnContext<'_>) -> bool {
        let is_available = |tool: &String| turn.tools.contains(tool);
        !self.is_filtered
            || trace.domain == turn.task.domain() && trace.sequence.iter().all(is_available)
    }
}

impl Arm for Nearest {
    fn name(&self) -> String {
        let kind = if self.is_filtered { "filtered" } else { "raw" };
        format!("nearest {kind} trace, k = {}", self.k)
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        let embedder = StaticEmbedder::new();
        let turns = training.turns.iter();
        let known: Vec<Trace<'t>> = turns
            .filter_map(|turn| self.trace(turn, &embedder))
            .collect();
        let this = Self { ..*self };
        let k = self.k;
        Box::new(move |turn: &TurnContext<'_>| {
            let wanted = StaticEmbedder::new().embed(turn.text());
            let mut ranked: Vec<(f32, &str)> = known
                .iter()
                .filter(|trace| this.fits(trace, turn))
                .map(|trace| (wanted.cosine(&trace.meaning), trace.line.as_str()))
                .collect();
            // Stable: of equally similar traces the earlier comes first.
            ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
            ranked
                .into_iter()
                .take(k)
                .map(|(_, line)| line.to_owned())
                .collect()
        })
    }
}

/// A strategy line for a text and a tool sequence; `None` for an empty sequence.
pub fn strategy_line(text: &str, sequence: &[&str]) -> Option<String> {
    if sequence.is_empty() {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    // Inner quotation marks would end the quotation.
    let quoted = words.join(" ").replace('"', "'");
    Some(format!(
        "For tasks like \"{quoted}\": `{}`.",
        sequence.join("`, then `")
    ))
}

/// A control: as many lines of the same length as another arm gives, without information. It measures the effect of
/// a longer prompt.
pub struct Filler<A>(pub A);

impl<A: Arm> Arm for Filler<A> {
    fn name(&self) -> String {
        format!("filler, as long as {}", self.0.name())
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        let other = self.0.learn(training);
        Box::new(move |turn: &TurnContext<'_>| {
            other
                .lines(turn)
                .iter()
                .map(|line| filler_line(line))
                .collect()
        })
    }
}

/// A line of the same length that names no tool.
pub fn filler_line(line: &str) -> String {
    const TEXT: &str = "Read what is asked for with care, and take the time that is needed. Be polite and \
                        be brief. It is good to be sure, and better to say so when one is not. ";
    let filler: String = TEXT.chars().cycle().take(line.chars().count()).collect();
    // A trailing space would be trimmed, which would make it shorter.
    match filler.strip_suffix(' ') {
        Some(shorter) => format!("{shorter}."),
        None => filler,
    }
}

/// A control: the lines of another arm with other tools. It measures whether the content matters.
pub struct Shuffled<A>(pub A);

impl<A: Arm> Arm for Shuffled<A> {
    fn name(&self) -> String {
        format!("shuffled {}", self.0.name())
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        let other = self.0.learn(training);
        let seed = training.seed;
        Box::new(move |turn: &TurnContext<'_>| {
            let purpose = format!("{} {}", turn.task.id, turn.turn);
            let mut random = seeded(seed, &purpose);
            let lines = other.lines(turn);
            lines
                .iter()
                .map(|line| replace_tools(line, turn.tools, &mut random))
                .collect()
        })
    }
}

/// A control: another arm that learned from all domains except that of the task.
pub struct OtherDomain<A>(pub A);

impl<A: Arm> Arm for OtherDomain<A> {
    fn name(&self) -> String {
        format!("{} of other domains", self.0.name())
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        let domains: BTreeSet<&str> = training
            .turns
            .iter()
            .map(|turn| turn.task.domain())
            .collect();
        let learned = domains.into_iter().map(|domain| {
            let mut others = training.clone();
            others.turns.retain(|turn| turn.task.domain() != domain);
            (domain, self.0.learn(&others))
        });
        let learned: HashMap<&str, Box<dyn Advice + 't>> = learned.collect();
        // A domain without training has only other domains.
        let all = self.0.learn(training);
        Box::new(move |turn: &TurnContext<'_>| {
            learned.get(turn.task.domain()).unwrap_or(&all).lines(turn)
        })
    }
}

/// A control: another arm that also learned from the test tasks. An honest arm that comes near it probably leaks
/// test data.
pub struct Leak<A>(pub A);

impl<A: Arm> Arm for Leak<A> {
    fn name(&self) -> String {
        format!("leak: {} that saw the test", self.0.name())
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        self.0.learn(training)
    }

    fn leaks(&self) -> bool {
        true
    }
}

/// The same line with each tool of the agent replaced by another one.
pub fn replace_tools(line: &str, tools: &[String], random: &mut Random) -> String {
    let is_name_character = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut changed = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find(is_name_character) {
        let (before, word) = rest.split_at(begin);
        let end = word.find(|c| !is_name_character(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        changed.push_str(before);
        let others: Vec<&String> = tools.iter().filter(|tool| *tool != word).collect();
        let is_tool = others.len() < tools.len() && !others.is_empty();
        changed.push_str(if is_tool {
            others[random.below(others.len())]
        } else {
            word
        });
        rest = after;
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use windlass_core::model::ChatMessage;
    use windlass_core::run::{Event, Next, Settings};
    use windlass_runtime::now;
    use windlass_spec::{Agent, AgentName, NonEmptyText, RunId};

    use super::*;
    use windlass_core::run::STRATEGIES_HEADING;

    #[test]
    fn advice_is_in_the_prompt_below_the_heading_that_the_policy_reads() {
        let instruction = NonEmptyText::new("You help.").expect("an instruction");
        let name = AgentName::new("worker").expect("a name");
        let model = "scripted/policy".parse().expect("a model");
        let started = Event::Started {
            run: RunId::new("one").expect("an id"),
            agent: Box::new(Agent::new(name, model, instruction)),
            agents: Vec::new(),
            assembly: serde_json::Map::new(),
            parent: None,
            holds: None,
            task: windlass_core::run::Task {
                description: "Help.".to_owned(),
                strategies: vec!["one".to_owned(), "two".to_owned()],
                ..Default::default()
            },
            settings: Settings::default(),
            at: now(),
        };
        let run = Run::fold([&started]).expect("a run");
        let Next::CallModel(request) = run.next() else {
            panic!("the model is asked first");
        };
        let Some(ChatMessage::System { content }) = request.messages.first().map(AsRef::as_ref)
        else {
            panic!("{request:?}");
        };
        assert!(
            content.contains(&format!("\n{STRATEGIES_HEADING}\n- one\n- two")),
            "{content}"
        );
    }

    #[test]
    fn strategy_line_has_one_quotation() {
        let line = strategy_line("Say \"hi\"\nto all", &["a", "b"]).expect("a line");
        assert_eq!(line, "For tasks like \"Say 'hi' to all\": `a`, then `b`.");
        assert_eq!(super::strategy_line("Nothing was done", &[]), None);
    }

    #[test]
    fn filler_has_the_length_of_the_original() {
        for length in 1..400 {
            let filler = filler_line(&"é".repeat(length));
            assert_eq!(filler.trim().chars().count(), length);
        }
    }

    #[test]
    fn replaced_lines_differ_only_in_their_tools() {
        let tools = ["t__a", "t__b", "t__c"].map(str::to_owned);
        let line = "For tasks like \"x\": `t__a`, then `t__b`, then `other`.";
        let changed = replace_tools(line, &tools, &mut seeded(1, ""));
        assert!(!changed.contains("`t__a`, then `t__b`"), "{changed}");
        assert!(
            changed.starts_with("For tasks like \"x\": `t__") && changed.ends_with("then `other`.")
        );
        assert_eq!(changed.len(), line.len());
    }
}
