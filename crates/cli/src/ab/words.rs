//! The findings of an experiment as text: table cells and verdicts, for terminals and reports.

use windlass_learn::ab::{
    Analysis, Compare, ExperimentVerdict, GuardStatus, Interval, ResampledUnit, Stopping,
};
use windlass_service::{ExperimentFindings, GuardRailFinding, MetricFinding};

use crate::table::{one_line, print_table};
use crate::terminal::print_line;

/// The maximum length of the description of an implementation.
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

pub(super) fn print_findings(findings: &ExperimentFindings) -> anyhow::Result<()> {
    for line in preamble(findings) {
        print_line(&line)?;
    }
    print_line("")?;
    print_table(METRIC_HEADINGS, &metric_rows(findings))?;
    print_line("")?;
    print_table(GUARD_HEADINGS, &guard_rows(findings))?;
    let notes = notes(findings);
    if !notes.is_empty() {
        print_line("")?;
    }
    for note in notes {
        print_line(&note)?;
    }
    Ok(())
}

/// The lines that describe the experiment.
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
        lines.push("A and B are the same library: every difference is chance".to_owned());
    } else if findings.differs.is_empty() {
        lines.push("no tool of the agent is known to differ between A and B".to_owned());
    }
    let early = match findings.is_stopped_early {
        true => ", stopped early",
        false => "",
    };
    lines.push(format!(
        "{} of {} pairs complete{early}",
        pairs.complete, pairs.planned
    ));
    lines
}

/// The notes on how to read the tables.
pub(super) fn notes(findings: &ExperimentFindings) -> Vec<String> {
    let mut notes = Vec::new();
    if findings.is_extended {
        notes.push(
            "the experiment was extended after it started, so its verdicts use e-values, which stay valid at \
             any time"
                .to_owned(),
        );
    }
    let analyses = findings.metrics.iter().map(|by| &by.analysis);
    if analyses
        .clone()
        .any(|by| by.holds_for == Some(ResampledUnit::Runs))
    {
        notes.push(
            "intervals apply to these tasks only; with 10 or more tasks they apply to similar tasks"
                .to_owned(),
        );
    }
    if findings.is_stopped_early {
        notes.push(
            "the experiment stopped early: verdicts use e-values, and differences tend to be overestimated"
                .to_owned(),
        );
    }
    for by in analyses {
        if let ExperimentVerdict::Invalid { because } = &by.verdict {
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
            per_run(guard.a),
            per_run(guard.b),
            format!("{:+.2}", guard.effect),
            match &guard.interval {
                Some(Interval { low, high, .. }) => format!("{low:+.2} to {high:+.2}"),
                None => "-".to_owned(),
            },
            match guard.status {
                GuardStatus::NotWorse => "B is not worse",
                GuardStatus::Worse => "B is worse",
                GuardStatus::Open => "open",
            }
            .to_owned(),
        ]
    };
    findings.guard_rails.iter().map(row).collect()
}

/// Formats a mean of a count per run. One that is rounded to zero has no sign.
fn per_run(mean: f64) -> String {
    let rounded = (mean * 100.0).round() / 100.0;
    format!("{:.2} per run", if rounded == 0.0 { 0.0 } else { rounded })
}

/// Formats a mean in its unit.
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

/// Formats the difference of B from A.
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

/// Formats the p-value if the length was planned, else the e-value and the threshold.
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

/// Formats a verdict. A pair counts as `units` of `what`.
pub(super) fn verdict(
    verdict: &ExperimentVerdict,
    arms: [&str; 2],
    what: &str,
    units: u64,
) -> String {
    match verdict {
        ExperimentVerdict::Better { arm } => {
            let arm = match arm {
                windlass_learn::ab::Arm::A => arms[0],
                windlass_learn::ab::Arm::B => arms[1],
            };
            format!("{arm} is better")
        }
        ExperimentVerdict::NoDifferenceShown {
            more_pairs: Some(more),
            ..
        } => format!(
            "no difference shown; if the observed difference is real, about {} more {what} would show it",
            rounded(more * units)
        ),
        ExperimentVerdict::NoDifferenceShown {
            more_pairs: None, ..
        } => "no difference shown".to_owned(),
        ExperimentVerdict::NotEnoughData { more_pairs } => {
            format!(
                "not enough data; about {} more {what} are needed",
                rounded(more_pairs * units)
            )
        }
        ExperimentVerdict::Invalid { .. } => "invalid".to_owned(),
    }
}

/// Rounds a number up to two significant digits.
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
    fn estimates_are_rounded_up_to_two_significant_digits() {
        let rounded = [0, 7, 42, 99, 100, 101, 1_234, 99_999].map(rounded);
        assert_eq!(rounded, [0, 7, 42, 99, 100, 110, 1_300, 100_000]);
    }
}
