//! What an experiment shows, in words: the cells of tables and the sentences of verdicts, for terminals
//! and for reports alike.

use windlass_learn::ab::{Analysis, Compare, Drawn, Interval, Standing, Stopping, Verdict};
use windlass_service::{ExperimentFindings, GuardRailFinding, MetricFinding};

use crate::table::{one_line, say_table};
use crate::terminal::say;

/// How much of an implementation is told.
const EXCERPT: usize = 100;

/// The headings of the table of metrics.
pub(super) const METRIC_HEADINGS: [&str; 7] = [
    "METRIC",
    "A",
    "B",
    "DIFFERENCE",
    "INTERVAL",
    "EVIDENCE",
    "VERDICT",
];

/// The headings of the table of guard rails.
pub(super) const GUARD_HEADINGS: [&str; 6] =
    ["GUARD RAIL", "A", "B", "DIFFERENCE", "INTERVAL", "VERDICT"];

pub(super) fn say_findings(findings: &ExperimentFindings) -> anyhow::Result<()> {
    for line in preamble(findings) {
        say(&line)?;
    }
    say("")?;
    say_table(METRIC_HEADINGS, &metric_rows(findings))?;
    say("")?;
    say_table(GUARD_HEADINGS, &guard_rows(findings))?;
    let notes = notes(findings);
    if !notes.is_empty() {
        say("")?;
    }
    for note in notes {
        say(&note)?;
    }
    Ok(())
}

/// What the experiment consists of, a line each.
pub(super) fn preamble(findings: &ExperimentFindings) -> Vec<String> {
    let pairs = &findings.pairs;
    let mut lines = vec![
        format!(
            "experiment {}: agent {}, {} tasks, each {} with A and with B, seed {}",
            findings.experiment,
            findings.agent,
            findings.tasks,
            match findings.runs {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            },
            findings.seed
        ),
        format!("A: {} (`{}`)", findings.a.library, findings.a.name),
        format!("B: {} (`{}`)", findings.b.library, findings.b.name),
    ];
    for differs in &findings.differs {
        lines.push(format!(
            "differs: {}: {} | {}",
            differs.tool,
            one_line(&differs.a, EXCERPT),
            one_line(&differs.b, EXCERPT)
        ));
    }
    if findings.is_same {
        lines.push("A and B are the same library: whatever differs is chance".to_owned());
    } else if findings.differs.is_empty() {
        lines.push("no tool of the agent is known to differ between A and B".to_owned());
    }
    let early = match findings.is_stopped_early {
        true => ", stopped early",
        false => "",
    };
    lines.push(format!(
        "{} of {} pairs count{early}",
        pairs.complete, pairs.planned
    ));
    lines
}

/// What else must be known to read the tables.
pub(super) fn notes(findings: &ExperimentFindings) -> Vec<String> {
    let mut notes = Vec::new();
    if findings.is_extended {
        notes.push(
            "it was made longer after it had begun, so it is judged by evidence that may be looked at at \
             any time"
                .to_owned(),
        );
    }
    let analyses = findings.metrics.iter().map(|by| &by.analysis);
    if analyses.clone().any(|by| by.holds_for == Some(Drawn::Runs)) {
        notes.push(
            "intervals hold for these tasks; with 10 or more they hold for tasks like them"
                .to_owned(),
        );
    }
    if findings.is_stopped_early {
        notes.push(
            "after an early stop the evidence decides; differences tend to look larger than they are"
                .to_owned(),
        );
    }
    for by in analyses {
        if let Verdict::Invalid { because } = &by.verdict {
            notes.push(format!(
                "invalid: {} runs ended with A and {} with B; {because}",
                findings.sample_ratio.a, findings.sample_ratio.b
            ));
            break;
        }
    }
    notes
}

/// The rows of the table of metrics.
pub(super) fn metric_rows(findings: &ExperimentFindings) -> Vec<[String; 7]> {
    let row = |by: &MetricFinding| {
        let analysis = &by.analysis;
        [
            by.metric.clone(),
            amount(analysis.a, by.unit),
            amount(analysis.b, by.unit),
            difference(analysis),
            interval(analysis),
            evidence(analysis, findings.stopping, findings.alpha),
            verdict(&analysis.verdict, ["A", "B"], "runs", 2),
        ]
    };
    findings.metrics.iter().map(row).collect()
}

/// The rows of the table of guard rails.
pub(super) fn guard_rows(findings: &ExperimentFindings) -> Vec<[String; 6]> {
    let row = |by: &GuardRailFinding| {
        let guard = &by.guard;
        [
            by.guard_rail.to_owned(),
            format!("{:.2} a run", guard.a),
            format!("{:.2} a run", guard.b),
            format!("{:+.2}", guard.effect),
            match &guard.interval {
                Some(Interval { low, high, .. }) => format!("{low:+.2} to {high:+.2}"),
                None => "-".to_owned(),
            },
            match guard.standing {
                Standing::NotWorse => "B is not worse",
                Standing::Worse => "B is worse",
                Standing::Open => "open",
            }
            .to_owned(),
        ]
    };
    findings.guard_rails.iter().map(row).collect()
}

/// A mean in its unit.
pub(super) fn amount(mean: Option<f64>, unit: &str) -> String {
    let Some(mean) = mean else {
        return "-".to_owned();
    };
    match unit {
        "share" => format!("{:.1} %", mean * 100.0),
        "milliseconds" if mean >= 1_000.0 => format!("{:.2} s", mean / 1_000.0),
        "milliseconds" => format!("{mean:.1} ms"),
        "microdollars" => format!("${:.6}", mean / 1e6),
        "tokens" => format!("{mean:.0} tokens"),
        _ => format!("{mean:.2}"),
    }
}

/// By how much B differs from A.
pub(super) fn difference(analysis: &Analysis) -> String {
    match (analysis.effect, analysis.compare) {
        (None, _) => "-".to_owned(),
        (Some(effect), Compare::Difference) => format!("{:+.1} points", effect * 100.0),
        (Some(effect), Compare::Ratio) => format!("{:+.1} %", effect * 100.0),
    }
}

pub(super) fn interval(analysis: &Analysis) -> String {
    match &analysis.interval {
        None => "-".to_owned(),
        Some(Interval { low, high, .. }) => format!("{:+.1} to {:+.1}", low * 100.0, high * 100.0),
    }
}

/// How sure it is: a p value where the length was planned, else evidence and how much is needed.
pub(super) fn evidence(analysis: &Analysis, stopping: Stopping, alpha: f64) -> String {
    match stopping {
        Stopping::Planned if analysis.p_value < 0.001 => "p < 0.001".to_owned(),
        Stopping::Planned => format!("p = {:.3}", analysis.p_value),
        Stopping::Optional => {
            let needed = (1.0 / alpha).round();
            let seen = analysis.evidence;
            match seen >= 1_000.0 {
                true => format!("over 1000 of {needed:.0}"),
                false => format!("{seen:.1} of {needed:.0}"),
            }
        }
    }
}

/// A verdict as a sentence. A pair is `units` of what is counted.
pub(super) fn verdict(verdict: &Verdict, arms: [&str; 2], what: &str, units: u64) -> String {
    match verdict {
        Verdict::Better { arm } => {
            let arm = match arm {
                windlass_learn::ab::Arm::A => arms[0],
                windlass_learn::ab::Arm::B => arms[1],
            };
            format!("{arm} is better")
        }
        Verdict::NoDifferenceShown {
            more_pairs: Some(more),
            ..
        } => format!(
            "no difference shown; if it is as it looks, about {} more {what} would show it",
            rounded(more * units)
        ),
        Verdict::NoDifferenceShown {
            more_pairs: None, ..
        } => "no difference shown".to_owned(),
        Verdict::NotEnoughData { more_pairs } => {
            format!(
                "not enough data, about {} more {what}",
                rounded(more_pairs * units)
            )
        }
        Verdict::Invalid { .. } => "invalid".to_owned(),
    }
}

/// A number with two digits that count: more would claim to know more.
fn rounded(number: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= 100 {
        unit *= 10;
    }
    number.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_runs_to_come_is_rounded_up_to_two_digits() {
        let told = [0, 7, 42, 99, 100, 101, 1_234, 99_999].map(rounded);
        assert_eq!(told, [0, 7, 42, 99, 100, 110, 1_300, 100_000]);
    }
}
