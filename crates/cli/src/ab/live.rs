//! `windlass ab report`: how the variants of tools do between which a library splits principals. The unit
//! is the principal, not the call: one who calls a thousand times is still one, so everything is averaged
//! for each principal first.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use windlass_learn::ab::{
    Analysis, Measure, Question, SAMPLE_RATIO_ALARM, Stopping, Verdict, judge_groups, sample_ratio,
};
use windlass_runtime::now;
use windlass_spec::{CallState, Timestamp, ToolName};
use windlass_store::{ExecutionFilter, Stopped, VariantExecution};

use super::page::{self, Section, Table};
use super::svg::Drawing;
use super::words;
use crate::Outcome;
use crate::arguments::AbReport;
use crate::data;
use crate::table::say_table;
use crate::terminal::{complain, put, say};

/// What resampling follows from. The same data always give the same report.
const SEED: u64 = 1;

const VARIANT_HEADINGS: [&str; 9] = [
    "VARIANT",
    "PRINCIPALS",
    "MEANT",
    "CALLS",
    "SUCCESS",
    "LATENCY",
    "ERRORS",
    "DENIALS",
    "UNDOS",
];

const COMPARED_HEADINGS: [&str; 6] = [
    "METRIC",
    "COMPARED",
    "DIFFERENCE",
    "INTERVAL",
    "EVIDENCE",
    "VERDICT",
];

pub(super) fn run(command: &AbReport, data: Option<&Path>) -> anyhow::Result<Outcome> {
    let stored = data::open(data)?;
    let tool = command.tool.as_deref().map(ToolName::new).transpose();
    let filter = ExecutionFilter {
        tenant: Some(stored.who().tenant.to_string()),
        tool: tool.context("this is no name of a tool")?,
        since: command.since.as_deref().map(since).transpose()?,
        ..ExecutionFilter::default()
    };
    let executions = stored.store().variant_executions(&filter)?;
    let stopped = stored.store().stopped_calls(&filter)?;
    let splits = splits(&executions, &stopped, command.alpha);
    if let Some(path) = &command.report {
        let sections: Vec<Section> = splits.iter().map(Split::section).collect();
        let is_drawing = path.extension().is_some_and(|extension| extension == "svg");
        anyhow::ensure!(
            !is_drawing || sections.len() == 1,
            "a drawing shows one experiment, and there are {}\nhint: name the tool, or write `.html`",
            sections.len()
        );
        std::fs::write(path, page::written(path, "Variants of tools", &sections))
            .with_context(|| format!("the report `{}` cannot be written", path.display()))?;
    }
    if command.json {
        for split in &splits {
            put(&format!("{}\n", serde_json::to_string(split)?))?;
        }
    } else if splits.is_empty() {
        complain("no tool with variants was executed")?;
    } else {
        for (index, split) in splits.iter().enumerate() {
            if index > 0 {
                say("")?;
            }
            split.say()?;
        }
    }
    Ok(Outcome::Done)
}

/// A moment, or so long before now.
fn since(text: &str) -> anyhow::Result<Timestamp> {
    let wrong = || {
        anyhow::anyhow!(
            "`{text}` is neither a moment nor a length of time\n\
             hint: write 2026-05-01T00:00:00Z, or 90m, 12h or 7d"
        )
    };
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        _ => return Err(wrong()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let earlier = number
        .checked_mul(unit * 1_000_000)
        .filter(|earlier| *earlier >= 0)
        .ok_or_else(wrong)?;
    Ok(Timestamp::from_microseconds(
        now().as_microseconds().saturating_sub(earlier),
    ))
}

/// What was seen of a principal.
#[derive(Debug, Clone, Default)]
struct Seen {
    calls: u64,
    successes: u64,
    milliseconds: f64,
    denials: u64,
    undos: u64,
}

/// What was seen of a variant.
#[derive(Debug, Clone, Serialize)]
struct Variant {
    variant: String,
    /// The share of principals that was to get it.
    share: f64,
    principals: u64,
    calls: u64,
    /// Means over principals.
    success: f64,
    latency_ms: f64,
    /// Sums over calls.
    errors: u64,
    denials: u64,
    undos: u64,
    #[serde(skip)]
    by_principal: Vec<Seen>,
}

/// How two variants compare.
#[derive(Debug, Clone, Serialize)]
struct Compared {
    metric: &'static str,
    /// A is the variant that most were to get.
    base: String,
    /// And B this one.
    variant: String,
    #[serde(flatten)]
    analysis: Analysis,
}

/// A tool whose principals are split.
#[derive(Debug, Clone, Serialize)]
struct Split {
    tool: ToolName,
    experiment: String,
    alpha: f64,
    variants: Vec<Variant>,
    /// How likely so odd a split of principals is, if it was meant to be as the shares say.
    sample_ratio: f64,
    /// Whether the shares were changed, so that nothing can be compared.
    is_changed: bool,
    compared: Vec<Compared>,
}

/// Groups executions by tool and experiment.
fn splits(executions: &[VariantExecution], stopped: &[Stopped], alpha: f64) -> Vec<Split> {
    let mut groups: BTreeMap<(&ToolName, &str), Vec<&VariantExecution>> = BTreeMap::new();
    for execution in executions {
        let key = (&execution.tool, execution.variant.experiment.as_str());
        groups.entry(key).or_default().push(execution);
    }
    let split = |((tool, experiment), executions): ((&ToolName, &str), Vec<_>)| {
        let stopped: Vec<&Stopped> = stopped.iter().filter(|one| one.tool == *tool).collect();
        Split::new(
            tool.clone(),
            experiment.to_owned(),
            &executions,
            &stopped,
            alpha,
        )
    };
    groups.into_iter().map(split).collect()
}

impl Split {
    fn new(
        tool: ToolName,
        experiment: String,
        executions: &[&VariantExecution],
        stopped: &[&Stopped],
        alpha: f64,
    ) -> Self {
        let mut shares: BTreeMap<&str, u32> = BTreeMap::new();
        let mut is_changed = false;
        // Principals in the order they came, with the variant they got first.
        let mut order: Vec<(&str, &str)> = Vec::new();
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        let mut seen: BTreeMap<&str, Seen> = BTreeMap::new();
        for execution in executions {
            let variant = &execution.variant;
            let share = *shares
                .entry(&variant.name)
                .or_insert(variant.share_millionths);
            is_changed |= share != variant.share_millionths;
            let principal = execution.principal.as_str();
            let got = *first.entry(principal).or_insert_with(|| {
                order.push((principal, &variant.name));
                &variant.name
            });
            is_changed |= got != variant.name;
            let of = seen.entry(principal).or_default();
            of.calls += 1;
            of.successes += u64::from(execution.state == CallState::Success);
            let took = execution.ended_at.microseconds_since(execution.started_at);
            of.milliseconds += took as f64 / 1_000.0;
        }
        for one in stopped {
            if let Some(of) = seen.get_mut(one.principal.as_str()) {
                of.denials = one.denials;
                of.undos = one.undos;
            }
        }
        let variants: Vec<Variant> = shares
            .iter()
            .map(|(name, share)| {
                let of = order.iter().filter(|(_, got)| got == name);
                let by = of.filter_map(|(principal, _)| seen.get(principal).cloned());
                Variant::new(name, f64::from(*share) / 1e6, by.collect())
            })
            .collect();
        let (mut counts, mut weights): (Vec<u64>, Vec<f64>) =
            variants.iter().map(|of| (of.principals, of.share)).unzip();
        let unseen = 1.0 - weights.iter().sum::<f64>();
        // A variant that nobody was seen to get.
        if unseen > 1e-5 {
            counts.push(0);
            weights.push(unseen);
        }
        let compared = compared(&variants, (&counts, &weights), alpha, is_changed);
        Self {
            tool,
            experiment,
            alpha,
            sample_ratio: sample_ratio(&counts, &weights),
            variants,
            is_changed,
            compared,
        }
    }

    fn title(&self) -> String {
        format!("{}: experiment {}", self.tool, self.experiment)
    }

    fn variant_rows(&self) -> Vec<[String; 9]> {
        let row = |of: &Variant| {
            [
                of.variant.clone(),
                of.principals.to_string(),
                format!("{:.1} %", of.share * 100.0),
                of.calls.to_string(),
                words::amount(Some(of.success), "share"),
                words::amount(Some(of.latency_ms), "milliseconds"),
                of.errors.to_string(),
                of.denials.to_string(),
                of.undos.to_string(),
            ]
        };
        self.variants.iter().map(row).collect()
    }

    fn compared_rows(&self) -> Vec<[String; 6]> {
        let row = |of: &Compared| {
            [
                of.metric.to_owned(),
                format!("{} with {}", of.variant, of.base),
                words::difference(&of.analysis),
                words::interval(&of.analysis),
                words::evidence(&of.analysis, Stopping::Optional, self.each_alpha()),
                of.told(),
            ]
        };
        self.compared.iter().map(row).collect()
    }

    /// The chance of error that is left to each comparison of variants.
    fn each_alpha(&self) -> f64 {
        self.alpha / self.variants.len().saturating_sub(1).max(1) as f64
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_changed {
            notes.push(
                "the weights were changed while it ran, so principals are not comparable; `--since` the \
                 change reads out the rest"
                    .to_owned(),
            );
        } else if self.sample_ratio < SAMPLE_RATIO_ALARM {
            notes.push(format!(
                "principals are split otherwise than was meant (p = {:.1e}): find out why before anything \
                 else",
                self.sample_ratio
            ));
        }
        notes.push(
            "means are over principals; denials and undos are of the principals who got the variant"
                .to_owned(),
        );
        notes
    }

    fn say(&self) -> anyhow::Result<()> {
        say(&self.title())?;
        say_table(VARIANT_HEADINGS, &self.variant_rows())?;
        if !self.compared.is_empty() {
            say("")?;
            say_table(COMPARED_HEADINGS, &self.compared_rows())?;
        }
        say("")?;
        for note in self.notes() {
            say(&note)?;
        }
        Ok(())
    }

    fn section(&self) -> Section {
        let effects = self.compared.iter().map(|of| {
            let name = format!("{}: {}", of.variant, of.metric);
            let told = format!("{}  ({})", of.told(), words::interval(&of.analysis));
            page::effect(name, &of.analysis, told)
        });
        let principals: u64 = self.variants.iter().map(|of| of.principals).sum();
        Section {
            drawing: Drawing {
                title: self.title(),
                subtitle: format!("{principals} principals, each with one variant"),
                effects: effects.collect(),
                unit_title: String::new(),
                units: Vec::new(),
            },
            lines: Vec::new(),
            tables: vec![
                Table::new(VARIANT_HEADINGS, self.variant_rows()),
                Table::new(COMPARED_HEADINGS, self.compared_rows()),
            ],
            notes: self.notes(),
        }
    }
}

impl Variant {
    fn new(name: &str, share: f64, by_principal: Vec<Seen>) -> Self {
        let count = by_principal.len().max(1) as f64;
        let sum = |of: fn(&Seen) -> u64| by_principal.iter().map(of).sum::<u64>();
        let mean = |of: fn(&Seen) -> f64| by_principal.iter().map(of).sum::<f64>() / count;
        Self {
            variant: name.to_owned(),
            share,
            principals: by_principal.len() as u64,
            calls: sum(|seen| seen.calls),
            success: mean(success),
            latency_ms: mean(latency),
            errors: sum(|seen| seen.calls - seen.successes),
            denials: sum(|seen| seen.denials),
            undos: sum(|seen| seen.undos),
            by_principal,
        }
    }
}

impl Compared {
    fn told(&self) -> String {
        words::verdict(
            &self.analysis.verdict,
            [&self.base, &self.variant],
            "principals",
            2,
        )
    }
}

fn success(seen: &Seen) -> f64 {
    seen.successes as f64 / seen.calls.max(1) as f64
}

fn latency(seen: &Seen) -> f64 {
    seen.milliseconds / seen.calls.max(1) as f64
}

/// A metric: its name, how it is judged, and what it is of a principal.
type By = (&'static str, Measure, fn(&Seen) -> f64);

/// Holds every variant against the one that most were to get. The chance of an error is shared between
/// them.
fn compared(
    variants: &[Variant],
    ratio: (&[u64], &[f64]),
    alpha: f64,
    is_changed: bool,
) -> Vec<Compared> {
    let base = variants
        .iter()
        .reduce(|most, of| if of.share > most.share { of } else { most });
    let Some(base) = base else {
        return Vec::new();
    };
    let others = variants.iter().filter(|of| of.variant != base.variant);
    let each = alpha / (variants.len().saturating_sub(1)).max(1) as f64;
    let mut all = Vec::new();
    for other in others {
        let metrics: [By; 2] = [
            ("success", Measure::SHARE, success),
            ("latency", Measure::EXPENSE, latency),
        ];
        for (metric, measure, of) in metrics {
            let question = Question {
                measure,
                alpha: each,
                stopping: Stopping::Optional,
                seed: SEED,
            };
            let values = |of_variant: &Variant| -> Vec<f64> {
                of_variant.by_principal.iter().map(of).collect()
            };
            let mut analysis = judge_groups(&values(base), &values(other), ratio, &question);
            if is_changed {
                analysis.verdict = Verdict::Invalid {
                    because: "the weights were changed while it ran".to_owned(),
                };
            }
            all.push(Compared {
                metric,
                base: base.variant.clone(),
                variant: other.variant.clone(),
                analysis,
            });
        }
    }
    all
}
