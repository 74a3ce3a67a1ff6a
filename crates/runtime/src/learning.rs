//! Learning from runs. Before a model is first asked, it is shown strategies of the playbook. When the run is
//! over, its calls become evidence. A playbook is advice: if it cannot be used, there is a warning and the run
//! continues without it.

mod check;
mod experience;

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_config::Configuration;
use windlass_core::gate::Rules;
use windlass_core::model::{ChatMessage, FINISH, ModelRequest, RequestedArguments};
use windlass_core::run::{RecalledStrategy, Run};
use windlass_learn::playbook::{
    CurationSettings, GroundedReflector, KeptStrategy, Playbook, PlaybookEntry, RecallQuery,
    accept_wording,
};
use windlass_model::ModelClient;
use windlass_spawn::Isolation;
use windlass_spec::{AgentName, Confidence, DEFAULT_DOMAIN, StrategySection, Timestamp};

use crate::playbook::{KeptPlaybook, PlaybookError, PlaybookPort, PlaybookUpdate};

pub use self::check::{Checker, answer_matches};
pub use self::experience::{followed, of as experience};

/// The operator's settings for learning.
#[derive(Debug, Clone, PartialEq)]
pub struct Learning {
    /// Whether finished runs change the playbook. If not, it is only read.
    pub learns: bool,
    /// How many strategies a model is shown.
    pub count: usize,
    /// The smallest similarity to the task.
    pub floor: f32,
    /// A run is a success only if its confidence is above this.
    pub min_confidence: Confidence,
    /// The command that checks answers, if there is one.
    pub checker: Option<Checker>,
    /// Whether a model rewords new strategies. The wording is checked.
    pub wording: bool,
    /// The size of a playbook, and what is removed from it.
    pub curation: CurationSettings,
}

impl Default for Learning {
    fn default() -> Self {
        Self {
            learns: true,
            count: RecallQuery::COUNT,
            floor: RecallQuery::FLOOR,
            min_confidence: Confidence::HALF,
            checker: None,
            wording: false,
            curation: CurationSettings::default(),
        }
    }
}

impl Learning {
    /// The settings of a configuration; `None` if learning is disabled.
    pub(crate) fn of(configuration: &Configuration) -> Option<Self> {
        let set = configuration.learning();
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        set.enabled.then(|| Self {
            learns: !set.frozen,
            count: size(set.recall),
            floor: set.similarity_floor.get() as f32,
            min_confidence: set.min_confidence,
            checker: (!set.checker.is_empty()).then(|| Checker {
                command: set.checker.clone(),
                directory: set.checker_directory.clone(),
                environment: set.checker_environment.clone(),
                programs: Some(Checker::programs_of(&set.checker, &set.checker_directory)),
            }),
            wording: set.wording,
            curation: CurationSettings {
                max_items: size(set.max_strategies),
                max_tokens: size(set.max_tokens),
                unused_after: size(set.unused_after),
                ..CurationSettings::default()
            },
        })
    }

    /// What holds for the runs of a program that sets nothing.
    pub(crate) fn usual() -> Option<Self> {
        Some(Self::default())
    }

    pub(crate) fn learns(&self) -> bool {
        self.learns
    }
}

/// The domain of a run's task.
pub(crate) fn domain(run: &Run) -> &str {
    let domain = run.task().domain.as_deref();
    let domain = domain.filter(|domain| !domain.trim().is_empty());
    domain.unwrap_or(DEFAULT_DOMAIN)
}

/// The names of an agent's tools and sub-agents, also those that the task leaves out.
fn declared_names(run: &Run) -> impl Iterator<Item = &str> {
    let agent = run.agent();
    let tools = agent.tools().iter().map(|tool| tool.name().as_str());
    tools.chain(agent.agents().iter().map(AgentName::as_str))
}

/// The strategies that the model of a run is shown, and the problems of the playbook.
pub(crate) async fn recall(
    playbooks: &dyn PlaybookPort,
    learning: &Learning,
    run: &Run,
    rules: &Rules,
) -> Result<(Vec<RecalledStrategy>, Vec<String>), PlaybookError> {
    let searched = playbooks.searchable(domain(run)).await?;
    // A strategy with a tool that cannot be called is not recalled.
    let usable = run.allowed_tools().filter(|tool| {
        let is_off = rules.switched_off(tool.name().as_str()).is_some();
        !is_off && tool.attributes().deprecated.is_none()
    });
    let tools = usable.map(|tool| tool.name().as_str());
    let found = searched.index.recall(&RecallQuery {
        count: learning.count,
        floor: learning.floor,
        tools: Some(tools.collect()),
        ..RecallQuery::new(&run.task().description)
    });
    let recalled = found.into_iter().map(|found| RecalledStrategy {
        id: found.id,
        section: found.section,
        sequence: found.sequence,
        text: found.text,
        similarity: f64::from(found.similarity),
        lower_bound: found.lower_bound,
    });
    let missing = searched.unknown_tools(declared_names(run));
    let problems = searched.problems.iter().chain(&missing);
    let problems = problems.map(ToString::to_string).collect();
    Ok((recalled.collect(), problems))
}

/// The result of learning from a run.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The updated playbook.
    pub kept: KeptPlaybook,
    /// The new strategies.
    pub new: Vec<KeptStrategy>,
    /// Problems that did not stop the learning.
    pub warnings: Vec<String>,
}

/// Updates the playbook of a run's domain with a run that is over. Learning from the same run again changes
/// nothing. `None` if the run teaches nothing about tools. The checker is isolated like a tool.
///
/// # Errors
/// If the playbook cannot be written.
pub async fn learn(
    playbooks: &dyn PlaybookPort,
    learning: &Learning,
    run: &Run,
    model: Option<&dyn ModelClient>,
    isolation: &Isolation,
    now: Timestamp,
) -> Result<Option<Learned>, PlaybookError> {
    let (checked, warning) = check::checked(learning.checker.as_ref(), run, isolation).await;
    if !experience::is_learnable(run) {
        return Ok(None);
    }
    let reflector = GroundedReflector {
        min_confidence: learning.min_confidence,
    };
    let domain = domain(run).to_owned();
    let mut known = None;
    let mut has_learned = false;
    let reflect = |playbook: &Playbook, entries: &[PlaybookEntry]| {
        let is_this =
            |entry: &PlaybookEntry| matches!(entry, PlaybookEntry::Run(of) if of.run == *run.id());
        if entries.iter().any(is_this) {
            return Vec::new();
        }
        known = Some(playbook.clone());
        let lacks = playbook.missing_tools(declared_names(run));
        let experience = experience::of_known(run, checked, &playbook.advised_tools(), now);
        let evidence = experience.and_then(|experience| reflector.reflect(&experience, lacks));
        has_learned = evidence.is_some();
        let entry = evidence.map(|evidence| PlaybookEntry::Run(Box::new(evidence)));
        entry.into_iter().collect()
    };
    let update = PlaybookUpdate {
        curation: learning.curation,
        now,
        entries: Box::new(reflect),
    };
    let kept = playbooks.update(&domain, update).await?;
    if !has_learned {
        return Ok(None);
    }
    let is_new = |strategy: &&KeptStrategy| {
        known.as_ref().is_none_or(|known| {
            let mut known = known.strategies.iter();
            !known.any(|known| known.id() == strategy.id())
        })
    };
    let new: Vec<KeptStrategy> = kept
        .playbook
        .strategies
        .iter()
        .filter(is_new)
        .cloned()
        .collect();
    let mut learned = Learned {
        warnings: warning.into_iter().collect(),
        kept,
        new,
    };
    if let (true, Some(model)) = (learning.wording, model) {
        reword(playbooks, learning, run, model, &mut learned, now).await?;
    }
    Ok(Some(learned))
}

const WORDING_PROMPT: &str = "\
You are given a note about which tools worked for a task. Say the same in one sentence that helps with other \
tasks of the kind: when it applies, then the tools. Name exactly the same tools, in the same order, each once, \
in back-ticks. Add no number, no quotation and no fact that is not in the note. Answer with the sentence alone.";

/// Lets a model reword the new strategies, and takes the wordings that keep the meaning.
async fn reword(
    playbooks: &dyn PlaybookPort,
    learning: &Learning,
    run: &Run,
    model: &dyn ModelClient,
    learned: &mut Learned,
    now: Timestamp,
) -> Result<(), PlaybookError> {
    let mut entries = Vec::new();
    for new in &learned.new {
        if new.strategy.section != StrategySection::Strategies {
            continue;
        }
        let request = ModelRequest {
            messages: vec![
                Arc::new(ChatMessage::System {
                    content: WORDING_PROMPT.to_owned(),
                }),
                Arc::new(ChatMessage::User {
                    content: new.strategy.content.to_string(),
                }),
            ],
            tools: Vec::new(),
        };
        let cancel = CancellationToken::new();
        let Ok(answer) = model.answer(&request, &cancel, &mut |_| {}).await else {
            break;
        };
        let finished = answer.calls.iter().find(|call| call.tool == FINISH);
        let wording = match finished.map(|call| &call.arguments) {
            Some(RequestedArguments::Json(arguments)) => {
                let answer = arguments.get("answer").and_then(Value::as_str);
                answer.unwrap_or_default().to_owned()
            }
            Some(RequestedArguments::Text(_)) | None => answer.text,
        };
        let tools = run.allowed_tools().map(|tool| tool.name().as_str());
        if let Ok(content) = accept_wording(&new.strategy, &wording, tools) {
            entries.push(PlaybookEntry::Worded {
                strategy: new.id().clone(),
                content,
                at: now,
            });
        }
    }
    if !entries.is_empty() {
        let update = PlaybookUpdate {
            curation: learning.curation,
            now,
            entries: Box::new(|_: &Playbook, _: &[PlaybookEntry]| entries),
        };
        learned.kept = playbooks.update(domain(run), update).await?;
    }
    Ok(())
}
