//! The chart: a bar for each arm with its interval, one block per regime. It supports light and dark themes.

use std::fmt::Write as _;

use crate::page::{Findings, percent};
use crate::statistics::Estimate;

const WIDTH: f64 = 860.0;
/// The width of the names, where the bars begin.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
const HEAD: f64 = 40.0;
const FOOT: f64 = 34.0;

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.small { font-size: 11px; fill: #59636e }
.saved { fill: #2f81f7 }
.lost { fill: #d1643b }
.line { stroke: #59636e; stroke-width: 1 }
.grid { stroke: #59636e; stroke-opacity: .25 }
.whisker { stroke: #1f2328; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9198a1 }
  .line { stroke: #9198a1 }
  .grid { stroke: #9198a1 }
  .whisker { stroke: #e6edf3 }
}";

/// The chart of the savings of each arm, as SVG.
pub fn chart(findings: &Findings) -> String {
    let rows: usize = findings
        .regimes
        .iter()
        .map(|found| found.arms.len() + 1)
        .sum();
    let height = HEAD + FOOT + ROW * rows as f64;
    let estimates = || {
        let arms = findings.regimes.iter().flat_map(|found| &found.arms);
        arms.map(|arm| arm.summary.saved)
    };
    // In steps of 20 %, always including zero.
    let step = |share: f64| (share * 5.0).ceil() / 5.0;
    let high = step(estimates().map(|figure| figure.high).fold(0.2, f64::max));
    let low = -step(estimates().map(|figure| -figure.low).fold(0.0, f64::max));
    let x = |share: f64| LEFT + (share - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">Iterations saved by \
         each arm, with 95 % intervals</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"12\" y=\"22\">Iterations saved, on tasks that both solve (scripted policy)</text>\n"
    );
    let bottom = height - FOOT;
    let steps = ((high - low) * 5.0).round() as usize;
    for tick in 0..=steps {
        let share = low + tick as f64 / 5.0;
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>\
             <text class=\"small\" x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{2:.0} %</text>",
            x(share),
            bottom + 18.0,
            share * 100.0,
        );
    }
    let mut y = HEAD;
    for found in &findings.regimes {
        let name = escape(found.regime.name());
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"12\" y=\"{}\">{name}</text>",
            y + 18.0
        );
        y += ROW;
        for arm in &found.arms {
            bar(&mut svg, y, &arm.name, arm.summary.saved, &x);
            y += ROW;
        }
    }
    let _ = writeln!(
        svg,
        "<line class=\"line\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>\n</svg>",
        x(0.0)
    );
    svg
}

fn bar(svg: &mut String, y: f64, arm: &str, saved: Estimate, x: &dyn Fn(f64) -> f64) {
    let Estimate { value, low, high } = saved;
    let class = if value < 0.0 { "lost" } else { "saved" };
    let (from, to) = (x(value.min(0.0)), x(value.max(0.0)));
    let middle = y + ROW / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"24\" y=\"{:.1}\">{}</text>\
         <rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>\
         <line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
         <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        middle + 4.5,
        escape(arm),
        middle - BAR / 2.0,
        to - from,
        x(low),
        x(high),
        WIDTH - RIGHT + 12.0,
        middle + 4.0,
        percent(value),
    );
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{ArmScores, Regime, Score};
    use crate::page::{ArmFindings, Baseline, RegimeFindings, page};

    fn measured(iterations: u32) -> ArmScores {
        let score = Score {
            iterations,
            calls: 3,
            tokens: 100,
            optimum: 4,
            cap: 40,
            is_success: true,
        };
        ArmScores {
            arm: "a".to_owned(),
            scores: vec![vec![Some(score); 3]],
            seconds: 1.0,
            false_strategies: None,
        }
    }

    fn findings() -> Findings {
        let without = measured(10);
        let arms = [("less <&> \"more\"", 5), ("worse | than", 12)];
        let arms = arms.map(|(arm, iterations)| {
            let measured = ArmScores {
                arm: arm.to_owned(),
                ..measured(iterations)
            };
            ArmFindings::new(&measured, &without)
        });
        Findings {
            machine: "a machine".to_owned(),
            source: "a file".to_owned(),
            tasks: 3,
            seeds: 1,
            regimes: vec![RegimeFindings {
                regime: Regime::NewTask,
                without: Baseline::of(&without),
                arms: arms.into(),
                halves: Vec::new(),
            }],
        }
    }

    #[test]
    fn names_are_escaped_and_bars_show_savings_and_losses() {
        let svg = chart(&findings());
        assert!(svg.contains("less &lt;&amp;&gt; &quot;more&quot;"), "{svg}");
        assert_eq!(svg.matches("class=\"saved\"").count(), 1);
        assert_eq!(svg.matches("class=\"lost\"").count(), 1);
        assert!(
            svg.contains(">50.0 %<") && svg.contains(">-20.0 %<"),
            "{svg}"
        );
    }

    #[test]
    fn page_has_a_row_for_each_arm() {
        let page = page(&findings(), Some("chart.svg"));
        assert!(
            page.contains("| 5.00 of 10.00 | 50.0 % [50.0, 50.0] |"),
            "{page}"
        );
        assert!(page.contains("| worse \\| than | 100.0 % |"), "{page}");
        assert!(page.contains("(chart.svg)") && page.contains("a machine"));
    }
}
