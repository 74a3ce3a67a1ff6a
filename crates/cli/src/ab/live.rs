//! `windlass ab report`: how the variants of tools compare between which a library splits principals.

use std::path::Path;

use anyhow::Context as _;
use windlass_learn::ab::Stopping;
use windlass_service::{VariantComparison, VariantQuery, VariantSplit, VariantSummary};
use windlass_spec::{Timestamp, ToolName};

use super::page::{self, Section, Table};
use super::svg::Drawing;
use super::words;
use crate::Outcome;
use crate::arguments::AbReport;
use crate::program::Program;
use crate::table::say_table;
use crate::terminal::{complain, put, say};

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

pub(super) fn run(
    program: &Program,
    command: &AbReport,
    data: Option<&Path>,
) -> anyhow::Result<Outcome> {
    let service = program.service(data);
    let tool = command.tool.as_deref().map(ToolName::new).transpose();
    let since = command.since.as_deref();
    let query = VariantQuery {
        tool: tool.context("this is no name of a tool")?,
        since: since
            .map(|text| self::since(text, service.now()))
            .transpose()?,
        alpha: command.alpha,
    };
    let splits = service.compare_variants(&program.identity()?, &query)?;
    if let Some(path) = &command.report {
        let sections: Vec<Section> = splits.iter().map(|split| Shown(split).section()).collect();
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
            Shown(split).say()?;
        }
    }
    Ok(Outcome::Done)
}

/// A moment, or so long before now.
fn since(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
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
        now.as_microseconds().saturating_sub(earlier),
    ))
}

/// A tool whose principals are split, as it is shown.
struct Shown<'s>(&'s VariantSplit);

impl Shown<'_> {
    fn title(&self) -> String {
        format!("{}: experiment {}", self.0.tool, self.0.experiment)
    }

    fn variant_rows(&self) -> Vec<[String; 9]> {
        let row = |of: &VariantSummary| {
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
        self.0.variants.iter().map(row).collect()
    }

    fn compared_rows(&self) -> Vec<[String; 6]> {
        let row = |of: &VariantComparison| {
            [
                of.metric.to_owned(),
                format!("{} with {}", of.variant, of.base),
                words::difference(&of.analysis),
                words::interval(&of.analysis),
                words::evidence(&of.analysis, Stopping::Optional, self.0.alpha_of_each()),
                verdict(of),
            ]
        };
        self.0.compared.iter().map(row).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.0.is_changed {
            notes.push(
                "the weights were changed while it ran, so principals are not comparable; `--since` the \
                 change reads out the rest"
                    .to_owned(),
            );
        } else if self.0.is_uneven() {
            notes.push(format!(
                "principals are split otherwise than was meant (p = {:.1e}): find out why before anything \
                 else",
                self.0.sample_ratio
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
        if !self.0.compared.is_empty() {
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
        let effects = self.0.compared.iter().map(|of| {
            let name = format!("{}: {}", of.variant, of.metric);
            let told = format!("{}  ({})", verdict(of), words::interval(&of.analysis));
            page::effect(name, &of.analysis, told)
        });
        let principals: u64 = self.0.variants.iter().map(|of| of.principals).sum();
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

fn verdict(of: &VariantComparison) -> String {
    words::verdict(
        &of.analysis.verdict,
        [&of.base, &of.variant],
        "principals",
        2,
    )
}
