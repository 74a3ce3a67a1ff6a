//! `windlass ab report`: compares the variants of tools that a library assigns to principals.

use std::path::Path;

use anyhow::Context as _;
use windlass_learn::ab::Stopping;
use windlass_service::{VariantComparison, VariantQuery, VariantSplit, VariantSummary};
use windlass_spec::ToolName;

use super::page::{self, Section, Table};
use super::svg::Drawing;
use super::words;
use crate::CommandOutcome;
use crate::arguments::AbReport;
use crate::moments::time_or_age;
use crate::program::Program;
use crate::table::print_table;
use crate::terminal::{eprint_line, print_json, print_line};

const VARIANT_HEADINGS: [&str; 9] = [
    "VARIANT",
    "PRINCIPALS",
    "PLANNED",
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
) -> anyhow::Result<CommandOutcome> {
    let service = program.service(data);
    let tool = command.tool.as_deref().map(ToolName::new).transpose();
    let since = command.since.as_deref();
    let query = VariantQuery {
        tool: tool.context("invalid tool name")?,
        since: since
            .map(|text| time_or_age(text, service.now()))
            .transpose()?,
        alpha: command.alpha,
    };
    let splits = service.compare_variants(&program.identity()?, &query)?;
    if let Some(path) = &command.report {
        let sections: Vec<Section> = splits
            .iter()
            .map(|split| VariantReport(split).section())
            .collect();
        let is_drawing = path.extension().is_some_and(|extension| extension == "svg");
        anyhow::ensure!(
            !is_drawing || sections.len() == 1,
            "an `.svg` report shows one experiment, but there are {}\nhint: name a tool, or write an `.html` report",
            sections.len()
        );
        windlass_files::write(path, page::render(path, "Variants of tools", &sections))
            .with_context(|| format!("cannot write the report `{}`", path.display()))?;
    }
    if command.json {
        for split in &splits {
            print_json(&format!("{}\n", serde_json::to_string(split)?))?;
        }
    } else if splits.is_empty() {
        eprint_line("no tool with variants has been called")?;
    } else {
        for (index, split) in splits.iter().enumerate() {
            if index > 0 {
                print_line("")?;
            }
            VariantReport(split).print()?;
        }
    }
    Ok(CommandOutcome::Done)
}

/// The variants of one tool, formatted for output.
struct VariantReport<'s>(&'s VariantSplit);

impl VariantReport<'_> {
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
                "the weights changed during the experiment, so principals are not comparable; use `--since` \
                 to report on the calls after the change"
                    .to_owned(),
            );
        } else if self.0.is_uneven() {
            notes.push(format!(
                "sample ratio mismatch: principals are not split as planned (p = {:.1e}). Find the cause \
                 before you use the results",
                self.0.sample_ratio
            ));
        }
        notes.push(
            "means are over principals; denials and undos are counted for the principals of each variant"
                .to_owned(),
        );
        notes
    }

    fn print(&self) -> anyhow::Result<()> {
        print_line(&self.title())?;
        print_table(VARIANT_HEADINGS, &self.variant_rows())?;
        if !self.0.compared.is_empty() {
            print_line("")?;
            print_table(COMPARED_HEADINGS, &self.compared_rows())?;
        }
        print_line("")?;
        for note in self.notes() {
            print_line(&note)?;
        }
        Ok(())
    }

    fn section(&self) -> Section {
        let effects = self.0.compared.iter().map(|of| {
            let name = format!("{}: {}", of.variant, of.metric);
            let label = format!("{}  ({})", verdict(of), words::interval(&of.analysis));
            page::effect(name, &of.analysis, label)
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
