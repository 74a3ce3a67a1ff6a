//! Formats structured data for people: plain text, Markdown, or indented JSON. It only arranges the
//! data; apart from line breaks nothing is added, omitted or rounded.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::declared;
use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::tool::Tool;

pub(super) fn format_response() -> Result<Tool, ToolBuildError> {
    declared::FORMAT_RESPONSE
        .builder()
        .typed(|arguments: Arguments| {
            let result = render(&arguments).map(|result| Formatted { result });
            std::future::ready(result)
        })
        .build()
}

#[derive(Deserialize)]
struct Arguments {
    data: Map<String, Value>,
    #[serde(default)]
    format: Format,
    title: Option<String>,
}

#[derive(Serialize)]
struct Formatted {
    result: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Text,
    #[default]
    Markdown,
    Json,
}

fn render(arguments: &Arguments) -> Result<String, ToolError> {
    let Arguments {
        data,
        format,
        title,
    } = arguments;
    if *format == Format::Json {
        let mut whole = Map::new();
        if let Some(title) = title {
            whole.insert("title".to_owned(), title.clone().into());
            whole.insert("data".to_owned(), data.clone().into());
        } else {
            whole = data.clone();
        }
        return serde_json::to_string_pretty(&whole).map_err(ToolError::from_display);
    }
    let mut page = Page {
        format: *format,
        blocks: Vec::new(),
    };
    if let Some(title) = title {
        page.heading(title, 1);
    }
    page.record(data, 2);
    Ok(page.blocks.join("\n\n"))
}

/// The maximum number of columns of a table. Records with few common fields would make a table that is mostly
/// empty and far larger than the data.
const MAX_COLUMNS: usize = 30;

/// The maximum heading level; deeper data is written as JSON.
const MAX_LEVEL: usize = 6;

struct Page {
    format: Format,
    /// Paragraphs, tables and headings, separated by an empty line.
    blocks: Vec<String>,
}

impl Page {
    fn heading(&mut self, text: &str, level: usize) {
        let text = one_line(text);
        self.blocks.push(match self.format {
            Format::Markdown => format!("{} {}", "#".repeat(level), escaped(&text)),
            _ => {
                let line = if level == 1 { "=" } else { "-" };
                let length = text.chars().count();
                format!("{text}\n{}", line.repeat(length))
            }
        });
    }

    /// Plain values first, as one list. Each object or array follows under its own heading.
    fn record(&mut self, fields: &Map<String, Value>, level: usize) {
        let is_plain = |value: &Value| !value.is_object() && !value.is_array();
        let plain: Vec<String> = fields
            .iter()
            .filter(|(_, value)| is_plain(value))
            .map(|(name, value)| self.field(name, value))
            .collect();
        if !plain.is_empty() {
            self.blocks.push(plain.join("\n"));
        }
        for (name, value) in fields.iter().filter(|(_, value)| !is_plain(value)) {
            self.heading(name, level);
            match value {
                _ if level >= MAX_LEVEL => self.blocks.push(self.cell(value)),
                Value::Object(inner) if inner.is_empty() => self.blocks.push("(empty)".to_owned()),
                Value::Object(inner) => self.record(inner, level + 1),
                Value::Array(items) => self.list(items),
                _ => {}
            }
        }
    }

    fn field(&self, name: &str, value: &Value) -> String {
        let name = one_line(name);
        match self.format {
            Format::Markdown => format!("- **{}:** {}", escaped(&name), self.cell(value)),
            _ => format!("{name}: {}", self.cell(value)),
        }
    }

    fn list(&mut self, items: &[Value]) {
        let rows: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
        let rows = rows.filter(|rows| columns(rows).len() <= MAX_COLUMNS);
        self.blocks.push(match rows {
            _ if items.is_empty() => "(empty)".to_owned(),
            Some(rows) => self.table(&rows),
            None => {
                let lines: Vec<String> = items
                    .iter()
                    .map(|item| format!("- {}", self.cell(item)))
                    .collect();
                lines.join("\n")
            }
        });
    }

    fn table(&self, rows: &[&Map<String, Value>]) -> String {
        let columns = columns(rows);
        let heads: Vec<String> = columns.iter().map(|name| self.text(name)).collect();
        let cells = rows.iter().map(|row| {
            let cells = columns.iter().map(|&name| row.get(name));
            cells
                .map(|cell| cell.map(|value| self.cell(value)).unwrap_or_default())
                .collect::<Vec<String>>()
        });
        let lines: Vec<Vec<String>> = std::iter::once(heads).chain(cells).collect();
        let widths: Vec<usize> = (0..columns.len())
            .map(|column| {
                let lengths = lines.iter().map(|line| line[column].chars().count());
                lengths.max().unwrap_or_default().max(3)
            })
            .collect();
        let markdown = self.format == Format::Markdown;
        let mut table = Vec::with_capacity(lines.len() + 1);
        for (number, line) in lines.iter().enumerate() {
            table.push(row(line, &widths, markdown));
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                table.push(row(&rule, &widths, markdown));
            }
        }
        table.join("\n")
    }

    /// A value on one line.
    fn cell(&self, value: &Value) -> String {
        match value {
            Value::Null => "(none)".to_owned(),
            Value::String(text) => self.text(text),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            other => self.text(&other.to_string()),
        }
    }

    fn text(&self, text: &str) -> String {
        let text = one_line(text);
        if self.format == Format::Markdown {
            escaped(&text)
        } else {
            text
        }
    }
}

/// All field names, in the order of first occurrence.
fn columns<'a>(rows: &[&'a Map<String, Value>]) -> Vec<&'a String> {
    let mut known = HashSet::new();
    let names = rows.iter().flat_map(|row| row.keys());
    names.filter(|&name| known.insert(name)).collect()
}

fn row(cells: &[String], widths: &[usize], markdown: bool) -> String {
    // One long cell must not pad all the others, which would multiply the size of the data.
    const MAX_WIDTH: usize = 60;
    let cells: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, &width)| format!("{cell:<0$}", width.min(MAX_WIDTH)))
        .collect();
    if markdown {
        format!("| {} |", cells.join(" | "))
    } else {
        cells.join("  ").trim_end().to_owned()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes text so that Markdown shows it unchanged.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(
            character,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#'
        ) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::render;

    fn shown(arguments: Value) -> String {
        render(&serde_json::from_value(arguments).unwrap()).unwrap()
    }

    #[test]
    fn a_list_of_records_becomes_a_markdown_table() {
        let data = json!({"city": "Paris", "rivers": [
            {"name": "Seine", "km": 777}, {"name": "Marne|Oise", "note": "joins\nit"}
        ]});
        assert_eq!(
            shown(json!({"data": data, "title": "France"})),
            "# France\n\n- **city:** Paris\n\n## rivers\n\n\
             | name        | km  | note     |\n\
             | ----------- | --- | -------- |\n\
             | Seine       | 777 |          |\n\
             | Marne\\|Oise |     | joins it |"
        );
    }

    #[test]
    fn plain_text_has_no_markup() {
        let data = json!({"ok": true, "tags": ["a_b", 2], "inner": {"deep": null}, "none": []});
        assert_eq!(
            shown(json!({"data": data, "format": "text"})),
            "ok: yes\n\ntags\n----\n\n- a_b\n- 2\n\ninner\n-----\n\ndeep: (none)\n\nnone\n----\n\n(empty)"
        );
    }

    #[test]
    fn records_with_few_common_fields_do_not_become_a_table() {
        let rows: Vec<Value> = (0..31)
            .map(|number| json!({format!("c{number}"): 1}))
            .collect();
        let text = shown(json!({"data": {"rows": rows}, "format": "text"}));
        assert!(text.contains("- {\"c30\":1}"), "{text}");
    }

    #[test]
    fn json_is_the_data_itself() {
        let data = json!({"a": [1, {"b": null}]});
        let text = shown(json!({"data": data, "format": "json"}));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), data);
    }

    #[test]
    fn markdown_in_the_data_stays_text() {
        let text = shown(json!({"data": {"a": "<b>*x*</b> [l](u)"}}));
        assert_eq!(text, "- **a:** \\<b\\>\\*x\\*\\</b\\> \\[l\\](u)");
    }
}
