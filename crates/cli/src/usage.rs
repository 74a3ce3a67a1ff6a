//! `windlass usage`: what models and tools used up, and what it cost.

use windlass_service::UsageQuery;
use windlass_service::types::{Usage as ModelUsage, UsageGroup, UsageSum};

use super::CommandOutcome;
use super::arguments::Usage;
use super::moments::time_or_age;
use super::plural::counted;
use super::program::Program;
use super::table::print_table;
use super::terminal::{print_json, print_line};

pub(super) fn run(program: &Program, command: &Usage) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let since = command.since.as_deref();
    let since = since
        .map(|text| time_or_age(text, service.now()))
        .transpose()?;
    let by = UsageGroup::from(command.by);
    let query = UsageQuery {
        agent: command.agent.clone(),
        principal: command.principal.clone(),
        since,
        by: Some(by),
    };
    let report = service.usage(&program.identity()?, &query)?;
    if command.json {
        print_json(&format!("{}\n", report.to_json()))?;
        return Ok(CommandOutcome::Done);
    }
    if report.groups.is_empty() {
        print_line("nothing was used")?;
        return Ok(CommandOutcome::Done);
    }
    let mut rows: Vec<[String; 6]> = report
        .groups
        .iter()
        .map(|(name, sum)| row(name.as_deref().unwrap_or("unknown"), sum))
        .collect();
    if rows.len() > 1 {
        rows.push(row("total", &report.total));
    }
    print_table(
        [by.as_str(), "answers", "input", "cached", "output", "cost"],
        &rows,
    )?;
    Ok(CommandOutcome::Done)
}

fn row(name: &str, sum: &UsageSum) -> [String; 6] {
    let usage = &sum.usage;
    [
        name.to_owned(),
        sum.answers.to_string(),
        usage.input_tokens.to_string(),
        usage.cached_tokens.to_string(),
        usage.output_tokens.to_string(),
        usage.cost().to_string(),
    ]
}

/// What a run used up, on one line; `None` if that is nothing.
pub(super) fn usage_line(usage: &ModelUsage) -> Option<String> {
    if usage.is_zero() || (usage.tokens() == 0 && usage.cost().is_nothing()) {
        return None;
    }
    let count = |tokens: u64| usize::try_from(tokens).unwrap_or(usize::MAX);
    let input = counted(count(usage.input_tokens), "input token", "input tokens");
    let output = counted(count(usage.output_tokens), "output token", "output tokens");
    Some(format!("{}, {input}, {output}", usage.cost()))
}
