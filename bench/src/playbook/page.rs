//! The page with the results, and the same as plain lines.

use std::fmt::Write as _;

use crate::measure::{FalseOnes, Measured, Regime};
use crate::statistics::{Estimate, Summary, summary};
use crate::world::CAP;

/// What was found.
pub struct Findings {
    /// The machine.
    pub machine: String,
    /// Where the tasks are from.
    pub source: String,
    /// How many tasks there are.
    pub tasks: usize,
    /// How many seeds.
    pub seeds: u64,
    /// What was found in each regime.
    pub regimes: Vec<Found>,
}

/// What was found in one regime.
pub struct Found {
    /// The regime.
    pub regime: Regime,
    /// Saying nothing.
    pub without: Baseline,
    /// What each arm came to.
    pub arms: Vec<OfArm>,
    /// The playbook on those tasks on which it was chosen how it ranks, and on the others, where both are
    /// among the tasks.
    pub halves: Vec<(String, Summary)>,
}

/// What an arm came to.
pub struct OfArm {
    /// The arm.
    pub name: String,
    /// What it came to.
    pub summary: Summary,
    /// How long it took.
    pub seconds: f64,
    /// What became of false strategies, where there were any.
    pub false_ones: Option<FalseOnes>,
}

impl OfArm {
    /// What a measurement came to beside saying nothing.
    pub fn new(measured: &Measured, silence: &Measured) -> Self {
        Self {
            name: measured.arm.clone(),
            summary: summary(measured, silence),
            seconds: measured.seconds,
            false_ones: measured.false_ones,
        }
    }
}

/// What comes of saying nothing.
#[derive(Debug, Clone, Copy)]
pub struct Baseline {
    /// How many tasks there were, all seeds together.
    pub tasks: usize,
    /// The share that was solved.
    pub solved: f64,
    /// Iterations a solved task.
    pub iterations: f64,
    /// The fewest for these.
    pub optimum: f64,
    /// Calls made, a solved task.
    pub calls: f64,
    /// Tokens shown, a solved task.
    pub tokens: f64,
}

impl Baseline {
    /// What a measurement of saying nothing came to.
    pub fn of(measured: &Measured) -> Self {
        let scores: Vec<_> = measured.scores.iter().flatten().flatten().collect();
        let solved: Vec<_> = scores.iter().filter(|score| score.is_success).collect();
        let mean = |sum: f64| sum / (solved.len().max(1)) as f64;
        Self {
            tasks: scores.len(),
            solved: solved.len() as f64 / scores.len().max(1) as f64,
            iterations: mean(solved.iter().map(|score| f64::from(score.iterations)).sum()),
            optimum: mean(solved.iter().map(|score| f64::from(score.optimum)).sum()),
            calls: mean(solved.iter().map(|score| f64::from(score.calls)).sum()),
            tokens: mean(solved.iter().map(|score| score.tokens as f64).sum()),
        }
    }
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    let rounded = (share * 1000.0).round() / 10.0;
    // There is no minus nothing.
    format!("{:.1} %", if rounded == 0.0 { 0.0 } else { rounded })
}

fn estimate(figure: Estimate) -> String {
    let plain = |share: f64| percent(share).trim_end_matches(" %").to_owned();
    let Estimate { value, low, high } = figure;
    format!("{} [{}, {}]", percent(value), plain(low), plain(high))
}

/// The page, in Markdown. `chart` is where it finds the picture.
pub fn page(findings: &Findings, chart: Option<&str>) -> String {
    let mut page = String::from("# What playbooks save\n\n");
    let Findings {
        tasks,
        seeds,
        source,
        ..
    } = findings;
    let _ = write!(
        page,
        "Made by `cargo xtask bench playbook`; do not edit. It measures how many iterations (one question to \
         the model each, the finishing one included) are saved by what is said below \"What worked before for \
         tasks like this:\" in the prompt.\n\n\
         The tasks are {tasks} multi-turn tasks of the Berkeley Function Calling Leaderboard ({source}); its \
         simulated APIs run behind a real MCP server, and each turn of a user is one ordinary run. **What \
         chooses the tools is a scripted policy, not a language model**: a deterministic reader of the prompt \
         (`bench/src/playbook/policy.rs`) that was laid down before there was a playbook. One rule of it was \
         changed once, before there was a playbook too, because it kept calling tools in vain: without any \
         advice it solved 39 % then. Its arguments come from an oracle, so only the choice of tools is \
         measured. How the playbook ranks was chosen on 100 of the tasks, how similar a task must be and how often something must have \
         failed before it is warned of on all of them. A run may take {CAP} iterations. What is \
         found here says how good a prior for that choice an arm is; it is no result of an agent.\n\n\
         *Saved* is a ratio of sums on the tasks that both the arm and saying nothing solve; *of all* counts \
         each failed task with its cap; *excess* is what is saved of the iterations above the fewest possible. \
         Intervals (95 %) come from drawing tasks with replacement, with {seeds} seeds of folds or values \
         together. *Worse* is the share of the tasks that both solve which take more iterations than without; *worse of all* \
         is the share of all tasks, a failed one counting its cap. The *sifted* traces have what the playbook has besides \
         merging, counting and ranking: the domain, the tools that are there, and no calls that only looked around. The arm \
         that *leaks* has learned from the tasks of the test, too: an alarm for whoever comes near it. Arms \
         that are *lived with* do the training again with what their playbook says, and learn from that, before \
         the test; one in five of their strategies is false at first where that is said.\n\n"
    );
    if let Some(chart) = chart {
        let _ = write!(page, "![Iterations saved by each arm]({chart})\n\n");
    }
    for found in &findings.regimes {
        let Baseline {
            tasks,
            solved,
            iterations,
            optimum,
            calls,
            tokens,
        } = found.without;
        let _ = write!(
            page,
            "## {}\n\nWithout advice: {} of {tasks} tasks (those of all seeds) solved, with {iterations:.2} iterations each \
             ({optimum:.2} at the fewest), {calls:.2} calls made and {tokens:.0} tokens shown. No arm can save \
             more than {}.\n\n\
             {HEADINGS}",
            found.regime.name(),
            percent(solved),
            percent(1.0 - optimum / iterations.max(1.0)),
        );
        for arm in &found.arms {
            row(&mut page, &arm.name, &arm.summary);
        }
        page.push('\n');
        if !found.halves.is_empty() {
            let _ = write!(
                page,
                "How the playbook ranks was chosen on half of these tasks (the two thresholds on all). Each half by itself:\n\n{HEADINGS}"
            );
            for (half, summary) in &found.halves {
                row(&mut page, half, summary);
            }
            page.push('\n');
        }
        tell_false_ones(&mut page, found);
        if found.regime == Regime::NewTask {
            page.push_str(&goals(found));
        }
    }
    let _ = writeln!(page, "Measured on: {}.", findings.machine);
    page
}

const HEADINGS: &str = "\
| arm | solved | difference | iterations | saved | of all | excess | tokens saved | worse | worse of all |
|---|---|---|---|---|---|---|---|---|---|
";

fn row(page: &mut String, name: &str, summary: &Summary) {
    let _ = writeln!(
        page,
        "| {} | {} | {} | {:.2} of {:.2} | {} | {} | {} | {} | {} | {} |",
        name.replace('|', "\\|"),
        percent(summary.solved),
        estimate(summary.success_difference),
        summary.iterations,
        summary.iterations_without,
        estimate(summary.saved),
        estimate(summary.saved_of_all),
        estimate(summary.saved_excess),
        estimate(summary.saved_tokens),
        percent(summary.worse),
        percent(summary.worse_of_all),
    );
}

/// What became of false strategies.
fn tell_false_ones(page: &mut String, found: &Found) {
    let mut is_told = false;
    for arm in &found.arms {
        if let Some(FalseOnes {
            all,
            retired,
            relied_on,
        }) = arm.false_ones
        {
            let name = arm.name.trim_start_matches("the same with 20 % ");
            let _ = writeln!(
                page,
                "- {name}: {retired} of {all} false strategies were retired before the test; the others are relied on by \
                 {relied_on:.2} on average."
            );
            is_told = true;
        }
    }
    if is_told {
        page.push('\n');
    }
}

/// What was promised of new tasks, and whether it holds.
fn goals(found: &Found) -> String {
    let arm = |name: &str| found.arms.iter().find(|arm| arm.name == name);
    let Some(book) = arm(BOOK) else {
        return String::new();
    };
    let mut goals = format!("What was promised for {BOOK}:\n\n| goal | found | |\n|---|---|---|\n");
    let mut goal = |what: &str, found: String, is_met: bool| {
        let met = if is_met { "met" } else { "**missed**" };
        let _ = writeln!(goals, "| {what} | {found} | {met} |");
    };
    let of = &book.summary;
    goal(
        "success without a playbook at least 50 %",
        percent(found.without.solved),
        found.without.solved >= 0.5,
    );
    goal(
        "success not inferior: the interval of the difference above -5 points",
        estimate(of.success_difference),
        of.success_difference.low > -0.05,
    );
    goal(
        "40 % fewer iterations",
        percent(of.saved.value),
        of.saved.value >= 0.4,
    );
    goal(
        "its interval above 30 %",
        estimate(of.saved),
        of.saved.low > 0.3,
    );
    goal(
        "fewer than 12 % of the tasks that both solve made worse",
        percent(of.worse),
        of.worse < 0.12,
    );
    goal(
        "fewer than 12 % of all tasks made worse",
        percent(of.worse_of_all),
        of.worse_of_all < 0.12,
    );
    let last = found.arms.iter().rev().find(|arm| arm.false_ones.is_some());
    if let Some(polluted) = last {
        let passes = polluted.name.rsplit("lived").next().unwrap_or_default();
        let clean = arm(&format!("{BOOK}, lived{passes}")).unwrap_or(book);
        let apart = (clean.summary.saved.value - polluted.summary.saved.value).abs();
        goal(
            "with one false strategy in five, lived with, within 3 points of the clean one",
            format!("{} apart", percent(apart)),
            apart <= 0.03,
        );
    }
    goals.push('\n');
    goals
}

/// The arm that promises are about.
const BOOK: &str = "playbook, k = 3";

/// One arm as a line for people who wait.
pub fn told(arm: &OfArm) -> String {
    let OfArm {
        name: arm,
        summary,
        seconds,
        false_ones,
    } = arm;
    let false_ones = false_ones.map_or(String::new(), |found| {
        format!(
            "; {} of {} false ones retired, the others relied on by {:.2}",
            found.retired, found.all, found.relied_on
        )
    });
    format!(
        "{arm}: saved {}; of all {}; excess {}; tokens {}; solved {} ({}); iterations {:.2} of {:.2} (optimum \
         {:.2}); calls {:.2} of {:.2}; worse {}, of all {}; {} pairs, both solved {}; {seconds:.0} s{false_ones}",
        estimate(summary.saved),
        estimate(summary.saved_of_all),
        estimate(summary.saved_excess),
        estimate(summary.saved_tokens),
        percent(summary.solved),
        estimate(summary.success_difference),
        summary.iterations,
        summary.iterations_without,
        summary.optimum,
        summary.calls,
        summary.calls_without,
        percent(summary.worse),
        percent(summary.worse_of_all),
        summary.pairs,
        summary.both,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_in_per_cent_without_a_minus_before_nothing() {
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(-0.0001), "0.0 %");
        let figure = Estimate {
            value: 0.5,
            low: -0.25,
            high: 1.0,
        };
        assert_eq!(estimate(figure), "50.0 % [-25.0, 100.0]");
    }
}
