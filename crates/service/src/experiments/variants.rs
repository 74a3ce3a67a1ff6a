//! Compares the variants of tools between which a library splits principals. The unit is the principal, not the
//! call: the values of each principal are averaged first, so that a principal with many calls counts once.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_learn::ab::{
    Analysis, AnalysisSettings, ExperimentVerdict, Measure, SAMPLE_RATIO_ALARM, Stopping,
    judge_groups, sample_ratio,
};
use windlass_spec::{CallState, Timestamp, ToolName};
use windlass_store::{ExecutionFilter, StoppedCalls, VariantExecution};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// The seed of resampling: the same data always give the same result.
const SEED: u64 = 1;

/// Selects the variants to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantQuery {
    /// Only those of this tool.
    pub tool: Option<ToolName>,
    /// Only calls that ended then or later.
    pub since: Option<Timestamp>,
    /// The significance level: the probability of a verdict where there is no difference.
    pub alpha: f64,
}

impl Service {
    /// Compares the variants of tools that principals of the identity's tenant were given.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn compare_variants(
        &self,
        identity: &Identity,
        query: &VariantQuery,
    ) -> Result<Vec<VariantSplit>, ServiceError> {
        identity.require(Scope::Read)?;
        let filter = ExecutionFilter {
            tenant: Some(identity.tenant().to_string()),
            tool: query.tool.clone(),
            since: query.since,
            ..ExecutionFilter::default()
        };
        let store = self.store()?;
        let executions = store.variant_executions(&filter)?;
        let stopped = store.count_denied_and_undone(&filter)?;
        Ok(splits(&executions, &stopped, query.alpha))
    }
}

/// The totals of a principal.
#[derive(Debug, Clone, Default, PartialEq)]
struct PrincipalTotals {
    calls: u64,
    successes: u64,
    milliseconds: f64,
    denials: u64,
    undos: u64,
}

/// The measurements of a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantSummary {
    /// The variant.
    pub variant: String,
    /// The planned share of principals.
    pub share: f64,
    /// How many principals got it.
    pub principals: u64,
    /// How many calls they made.
    pub calls: u64,
    /// The share of calls that succeeded, as a mean over principals.
    pub success: f64,
    /// How long calls took, as a mean over principals.
    pub latency_ms: f64,
    /// How many calls failed.
    pub errors: u64,
    /// How many calls were denied.
    pub denials: u64,
    /// How many calls were undone.
    pub undos: u64,
    #[serde(skip)]
    by_principal: Vec<PrincipalTotals>,
}

/// How two variants compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantComparison {
    /// The metric.
    pub metric: &'static str,
    /// The variant with the largest planned share: A in the analysis.
    pub base: String,
    /// The other variant: B in the analysis.
    pub variant: String,
    /// How they compare.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// A tool with variants between which principals are split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantSplit {
    /// The tool.
    pub tool: ToolName,
    /// The name of the experiment.
    pub experiment: String,
    /// The significance level: the probability of a verdict where there is no difference.
    pub alpha: f64,
    /// Its variants.
    pub variants: Vec<VariantSummary>,
    /// The probability of a split at least this uneven, given the planned shares.
    pub sample_ratio: f64,
    /// Whether the shares were changed, so that no comparison is possible.
    pub is_changed: bool,
    /// How the variants compare.
    pub compared: Vec<VariantComparison>,
}

/// Groups executions by tool and experiment.
fn splits(
    executions: &[VariantExecution],
    stopped: &[StoppedCalls],
    alpha: f64,
) -> Vec<VariantSplit> {
    let mut groups: BTreeMap<(&ToolName, &str), Vec<&VariantExecution>> = BTreeMap::new();
    for execution in executions {
        let key = (&execution.tool, execution.variant.experiment.as_str());
        groups.entry(key).or_default().push(execution);
    }
    let split = |((tool, experiment), executions): ((&ToolName, &str), Vec<_>)| {
        let stopped: Vec<&StoppedCalls> = stopped.iter().filter(|one| one.tool == *tool).collect();
        VariantSplit::new(
            tool.clone(),
            experiment.to_owned(),
            &executions,
            &stopped,
            alpha,
        )
    };
    groups.into_iter().map(split).collect()
}

impl VariantSplit {
    fn new(
        tool: ToolName,
        experiment: String,
        executions: &[&VariantExecution],
        stopped: &[&StoppedCalls],
        alpha: f64,
    ) -> Self {
        let mut shares: BTreeMap<&str, u32> = BTreeMap::new();
        let mut is_changed = false;
        // Principals in order of their first call, with the variant of that call.
        let mut order: Vec<(&str, &str)> = Vec::new();
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        let mut seen: BTreeMap<&str, PrincipalTotals> = BTreeMap::new();
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
        let variants: Vec<VariantSummary> = shares
            .iter()
            .map(|(name, share)| {
                let of = order.iter().filter(|(_, got)| got == name);
                let by = of.filter_map(|(principal, _)| seen.get(principal).cloned());
                VariantSummary::new(name, f64::from(*share) / 1e6, by.collect())
            })
            .collect();
        let (mut counts, mut weights): (Vec<u64>, Vec<f64>) =
            variants.iter().map(|of| (of.principals, of.share)).unzip();
        let unseen = 1.0 - weights.iter().sum::<f64>();
        // A variant that no principal got.
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

    /// The significance level of each comparison of variants.
    #[must_use]
    pub fn alpha_of_each(&self) -> f64 {
        each_alpha(self.alpha, self.variants.len())
    }

    /// Whether the split of principals differs too much from the planned shares.
    #[must_use]
    pub fn is_uneven(&self) -> bool {
        self.sample_ratio < SAMPLE_RATIO_ALARM
    }
}

impl VariantSummary {
    fn new(name: &str, share: f64, by_principal: Vec<PrincipalTotals>) -> Self {
        let count = by_principal.len().max(1) as f64;
        let sum = |of: fn(&PrincipalTotals) -> u64| by_principal.iter().map(of).sum::<u64>();
        let mean =
            |of: fn(&PrincipalTotals) -> f64| by_principal.iter().map(of).sum::<f64>() / count;
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

/// The significance level of each comparison with this number of variants.
fn each_alpha(alpha: f64, variants: usize) -> f64 {
    alpha / variants.saturating_sub(1).max(1) as f64
}

fn success(seen: &PrincipalTotals) -> f64 {
    seen.successes as f64 / seen.calls.max(1) as f64
}

fn latency(seen: &PrincipalTotals) -> f64 {
    seen.milliseconds / seen.calls.max(1) as f64
}

/// A metric: its name, how it is analysed, and its value for a principal.
type VariantMetric = (&'static str, Measure, fn(&PrincipalTotals) -> f64);

/// Compares every variant with the one of the largest planned share. The significance level is divided between
/// the comparisons.
fn compared(
    variants: &[VariantSummary],
    ratio: (&[u64], &[f64]),
    alpha: f64,
    is_changed: bool,
) -> Vec<VariantComparison> {
    let base = variants
        .iter()
        .reduce(|most, of| if of.share > most.share { of } else { most });
    let Some(base) = base else {
        return Vec::new();
    };
    let others = variants.iter().filter(|of| of.variant != base.variant);
    let each = each_alpha(alpha, variants.len());
    let mut all = Vec::new();
    for other in others {
        let metrics: [VariantMetric; 2] = [
            ("success", Measure::SHARE, success),
            ("latency", Measure::EXPENSE, latency),
        ];
        for (metric, measure, of) in metrics {
            let question = AnalysisSettings {
                measure,
                alpha: each,
                stopping: Stopping::Optional,
                seed: SEED,
            };
            let values = |of_variant: &VariantSummary| -> Vec<f64> {
                of_variant.by_principal.iter().map(of).collect()
            };
            let mut analysis = judge_groups(&values(base), &values(other), ratio, &question);
            if is_changed {
                analysis.verdict = ExperimentVerdict::Invalid {
                    because: "the weights were changed during the experiment".to_owned(),
                };
            }
            all.push(VariantComparison {
                metric,
                base: base.variant.clone(),
                variant: other.variant.clone(),
                analysis,
            });
        }
    }
    all
}
