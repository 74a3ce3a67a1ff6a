//! Files of evidence as JSON Lines, as comma-separated values and as a page.

use serde_json::{Value, json};

use super::{AuditFormat, AuditRecord};
use crate::error::ServiceError;

/// The columns of tables.
const COLUMNS: [&str; 16] = [
    "record",
    "at",
    "kind",
    "run",
    "number",
    "principal",
    "agent",
    "call",
    "tool",
    "arguments",
    "decision",
    "reason",
    "policies",
    "configuration",
    "approvers",
    "outcome",
];

/// What is in front of the last line of a table of values.
const CSV_MARK: &str = "# ";

const STYLE: &str = "\
body{font:14px/1.5 system-ui,sans-serif;margin:2rem;background:#fff;color:#1b1f24}\
table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.3rem .5rem;border-bottom:1px solid #d1d9e0;vertical-align:top;\
overflow-wrap:anywhere;white-space:pre-wrap}th{font-size:12px;color:#59636e}";

/// The file without its last line.
pub(super) fn write(format: AuditFormat, records: &[AuditRecord]) -> Result<String, ServiceError> {
    match format {
        AuditFormat::JsonLines => json_lines(records),
        AuditFormat::Csv => Ok(table(records, &COLUMNS, csv_row)),
        AuditFormat::Html => {
            let rows = table(records, &COLUMNS, html_row);
            Ok(format!(
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Windlass audit</title>\
                 <style>{STYLE}</style></head><body><h1>Windlass audit</h1>\n\
                 <p>Check this file with <code>windlass audit verify</code>.</p>\n<table>\n{rows}</table></body></html>\n"
            ))
        }
    }
}

/// The signed line as the format needs it.
pub(super) fn last_line(format: AuditFormat, line: &str) -> String {
    match format {
        AuditFormat::JsonLines => line.to_owned(),
        AuditFormat::Csv => format!("{CSV_MARK}{line}"),
        AuditFormat::Html => format!("<!-- {line} -->"),
    }
}

/// One object per line, each with the digest of the line before.
fn json_lines(records: &[AuditRecord]) -> Result<String, ServiceError> {
    let mut text = String::new();
    let mut previous = String::new();
    for (record, index) in records.iter().zip(1u64..) {
        let line = json!({"record": index, "previous": previous, "content": record});
        let line = serde_json::to_string(&line);
        let line = line.map_err(|error| ServiceError::failed(error.to_string()))?;
        previous = super::hex::encode(&windlass_keys::sha256(line.as_bytes()));
        text += &line;
        text.push('\n');
    }
    Ok(text)
}

fn table(records: &[AuditRecord], columns: &[&str], row: fn(&[String], bool) -> String) -> String {
    let heading: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
    let mut text = row(&heading, true);
    for (record, index) in records.iter().zip(1u64..) {
        text += &row(&cells(record, index), false);
    }
    text
}

fn cells(record: &AuditRecord, index: u64) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let list = |values: &[Value]| match values {
        [] => String::new(),
        values => Value::Array(values.to_vec()).to_string(),
    };
    // What is purged, or is not shown for another reason, has a digest.
    let digest = record.call_digest.as_ref().or(record.event_digest.as_ref());
    let arguments = record.arguments.as_ref().map(Value::to_string);
    vec![
        index.to_string(),
        record.at.clone(),
        record.kind.clone(),
        text(&record.run),
        record
            .number
            .map_or_else(String::new, |number| number.to_string()),
        text(&record.principal),
        text(&record.agent),
        text(&record.call),
        text(&record.tool),
        arguments.or_else(|| digest.cloned()).unwrap_or_default(),
        text(&record.decision),
        text(&record.reason),
        record.policies.join(" "),
        text(&record.configuration),
        list(&record.approvers),
        text(&record.outcome),
    ]
}

fn csv_row(cells: &[String], _: bool) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| csv_cell(cell)).collect();
    cells.join(",") + "\n"
}

fn csv_cell(cell: &str) -> String {
    // A program for tables would compute what begins like a formula.
    let cell = match cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{cell}"),
        false => cell.to_owned(),
    };
    match cell.contains(['"', ',', '\n', '\r', '#']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

fn html_row(cells: &[String], is_heading: bool) -> String {
    let name = if is_heading { "th" } else { "td" };
    let cells: String = cells
        .iter()
        .map(|cell| format!("<{name}>{}</{name}>", html_text(cell)))
        .collect();
    format!("<tr>{cells}</tr>\n")
}

fn html_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_leave_their_place() {
        assert_eq!(csv_cell("=1+1"), "'=1+1");
        assert_eq!(csv_cell("a\"b,c"), "\"a\"\"b,c\"");
        assert_eq!(csv_cell("two\nlines"), "\"two\nlines\"");
        assert_eq!(html_text("<b>&'\""), "&lt;b&gt;&amp;&#39;&quot;");
    }
}
