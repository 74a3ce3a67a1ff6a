//! Markdown of a model, rendered for a terminal: headings, emphasis, lists, code, tables, and links with their
//! addresses. Every line fits on the terminal. The text is escaped after it was parsed, because entities such as
//! `&#27;` are characters only then.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::layout::{
    Cells, Character, Style, TableKind, lay_out, paint, split, styled_text, width_of, wrap,
};
use super::{visible, visible_line};

/// The fewest columns of a line, even if the terminal is narrower.
const LEAST_WIDTH: usize = 10;

/// The most columns of a horizontal rule.
const RULE: usize = 24;

const TAB: &str = "    ";

/// How a text is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// The most columns of a line.
    pub(crate) width: usize,
    /// Whether styles are used. Without them, the marks of emphasis, headings and code stay.
    pub(crate) is_styled: bool,
}

impl Page {
    /// The lines of a text.
    pub(crate) fn render(self, markdown: &str) -> Vec<String> {
        let mut renderer = Renderer::new(self);
        for event in Parser::new_ext(markdown, options()) {
            renderer.event(event);
        }
        renderer.end_paragraph();
        renderer.lines
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Markdown that arrives in pieces. A block is rendered once the next one begins.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    page: Page,
    /// What follows the blocks that are rendered.
    rest: String,
    has_lines: bool,
}

impl MarkdownStream {
    pub(crate) fn new(page: Page) -> Self {
        Self {
            page,
            rest: String::new(),
            has_lines: false,
        }
    }

    /// Adds a piece. Returns the lines of the blocks that are complete now.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<String> {
        self.rest.push_str(piece);
        // The next characters may change what an unfinished line means.
        let whole_lines = match piece.contains('\n') {
            true => self.rest.rfind('\n').map_or(0, |end| end + 1),
            false => 0,
        };
        let end = start_of_last_block(&self.rest[..whole_lines]);
        let complete: String = self.rest.drain(..end).collect();
        self.render(&complete)
    }

    /// The lines of the block that is not complete yet.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let lines = self.page.render(&self.rest);
        self.spaced(lines)
    }

    /// The lines of what is left.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let rest = std::mem::take(&mut self.rest);
        self.render(&rest)
    }

    fn render(&mut self, markdown: &str) -> Vec<String> {
        let lines = self.page.render(markdown);
        let lines = self.spaced(lines);
        self.has_lines |= !lines.is_empty();
        lines
    }

    /// With an empty line between these lines and those before.
    fn spaced(&self, mut lines: Vec<String>) -> Vec<String> {
        if self.has_lines && !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }
}

/// Where the last block of a text begins.
fn start_of_last_block(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut start = 0;
    // A block of code begins after its indentation.
    let line_of = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    for (event, Range { start: at, .. }) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    start = line_of(at);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => start = line_of(at),
            _ => {}
        }
    }
    start
}

/// What stands before the lines of a list item or a quotation.
#[derive(Debug)]
struct Margin {
    /// Before the first line. `None` once it is written.
    first: Option<String>,
    /// Before the further lines.
    further: String,
}

/// A table that is read.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<Cells>>,
}

#[derive(Debug)]
struct Renderer {
    page: Page,
    lines: Vec<String>,
    /// Whether an empty line comes before the next line.
    is_apart: bool,
    margins: Vec<Margin>,
    /// The numbers of the next items of the open lists; `None` for lists without numbers.
    lists: Vec<Option<u64>>,
    /// The paragraph, heading or table cell that is read.
    text: Vec<Character>,
    style: Style,
    /// The addresses of the open links and images, and where their texts begin.
    links: Vec<(String, usize)>,
    table: Option<Table>,
    code: Option<String>,
}

impl Renderer {
    fn new(page: Page) -> Self {
        let width = page.width.max(LEAST_WIDTH);
        Self {
            page: Page { width, ..page },
            lines: Vec::new(),
            is_apart: false,
            margins: Vec::new(),
            lists: Vec::new(),
            text: Vec::new(),
            style: Style::default(),
            links: Vec::new(),
            table: None,
            code: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push(&text),
            },
            Event::Html(text) => {
                for line in text.split_inclusive('\n') {
                    self.push(line.trim_end_matches('\n'));
                    self.text.push(('\n', self.style));
                }
            }
            Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push(&text),
            Event::Code(text) => {
                self.mark("`");
                let style = self.style;
                self.style.is_code = true;
                self.push(&text);
                self.style = style;
                self.mark("`");
            }
            // Models break lines where they mean it.
            Event::SoftBreak | Event::HardBreak => self.text.push(('\n', self.style)),
            Event::Rule => {
                self.end_paragraph();
                let width = self.room().min(RULE);
                self.write(&plain(&"-".repeat(width)));
                self.is_apart = true;
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_paragraph();
                self.style.is_bold = true;
                self.style.is_underlined = level == HeadingLevel::H1;
                self.mark(&format!("{} ", "#".repeat(level as usize)));
            }
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.separate();
                self.add_margin(None, "> ");
            }
            Tag::CodeBlock(_) => {
                self.end_paragraph();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                let is_nested = !self.lists.is_empty();
                self.end_paragraph();
                self.is_apart &= !is_nested;
                self.lists.push(first);
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".to_owned(),
                };
                let further = " ".repeat(mark.len());
                self.add_margin(Some(mark), &further);
            }
            Tag::Emphasis => {
                self.mark("*");
                self.style.is_italic = true;
            }
            Tag::Strong => {
                self.mark("**");
                self.style.is_bold = true;
            }
            Tag::Strikethrough => {
                self.mark("~~");
                self.style.is_struck = true;
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.text.len()));
            }
            Tag::Table(_) => {
                self.end_paragraph();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    self.style.is_bold = table.rows.is_empty();
                    table.rows.push(Vec::new());
                }
            }
            Tag::Paragraph => self.end_paragraph(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_paragraph();
                self.is_apart = true;
            }
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.style = Style::default();
                self.is_apart = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_paragraph();
                let margin = self.margins.pop();
                // An item without text.
                if let Some(mark) = margin.and_then(|margin| margin.first) {
                    self.write(&plain(mark.trim_end()));
                }
                self.is_apart |= tag != TagEnd::Item;
            }
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
                self.is_apart |= self.lists.is_empty();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.is_apart = true;
            }
            TagEnd::Emphasis => {
                self.style.is_italic = false;
                self.mark("*");
            }
            TagEnd::Strong => {
                self.style.is_bold = false;
                self.mark("**");
            }
            TagEnd::Strikethrough => {
                self.style.is_struck = false;
                self.mark("~~");
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::TableHead => self.style.is_bold = false,
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// Adds text, on one line.
    fn push(&mut self, text: &str) {
        let text = text.replace(['\n', '\t'], " ");
        let style = self.style;
        self.text
            .extend(visible_line(&text).chars().map(|c| (c, style)));
    }

    /// Adds a mark that is only needed without styles.
    fn mark(&mut self, mark: &str) {
        if !self.page.is_styled {
            self.text.extend(plain(mark));
        }
    }

    /// Adds the address of a link after its text.
    fn end_link(&mut self) {
        let Some((address, start)) = self.links.pop() else {
            return;
        };
        let text = self.text.iter().skip(start).map(|(c, _)| *c);
        let text: String = text.collect();
        let shown = visible_line(&address);
        if text.trim() != shown && !shown.is_empty() {
            let style = self.style;
            self.style.is_link = true;
            let before = if text.is_empty() { "" } else { " " };
            self.push(&format!("{before}({address})"));
            self.style = style;
        }
    }

    /// Adds a margin. Text that is nested deeply has no more of them, so that there is room for it.
    fn add_margin(&mut self, first: Option<String>, further: &str) {
        let has_room = self.room() > self.page.width / 2 && self.room() > 2 * LEAST_WIDTH;
        self.margins
            .push(match has_room || self.margins.is_empty() {
                true => Margin {
                    first,
                    further: further.to_owned(),
                },
                false => Margin {
                    first: first.map(|_| String::new()),
                    further: String::new(),
                },
            });
    }

    /// The columns for text behind the margins.
    fn room(&self) -> usize {
        let margins = self.margins.iter().map(|margin| width_of(&margin.further));
        self.page.width.saturating_sub(margins.sum())
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.iter().all(|(c, _)| c.is_whitespace()) {
            return;
        }
        for line in wrap(&text, self.room()) {
            self.write(&line);
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let style = Style {
            is_code: true,
            ..Style::default()
        };
        for line in visible(&code).trim_end_matches('\n').split('\n') {
            let line = line.replace('\t', TAB);
            let characters: Vec<Character> = line.chars().map(|c| (c, style)).collect();
            let room = self.room().saturating_sub(2);
            // The spaces of code have a meaning, so that it is not wrapped between words.
            for row in split(&characters, room) {
                self.write(&[plain("  "), row].concat());
            }
        }
        self.is_apart = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        for line in lay_out(&table.rows, self.room(), TableKind::Quoted).concat() {
            self.write(&line);
        }
        self.is_apart = true;
    }

    /// Writes the empty line between two blocks.
    fn separate(&mut self) {
        if std::mem::take(&mut self.is_apart) && !self.lines.is_empty() {
            let margins = self.margins.iter().filter(|margin| margin.first.is_none());
            let margins: String = margins.map(|margin| margin.further.as_str()).collect();
            self.lines.push(margins.trim_end().to_owned());
        }
    }

    /// Writes a line behind the margins.
    fn write(&mut self, line: &[Character]) {
        self.separate();
        let mut characters = Vec::with_capacity(line.len());
        for margin in &mut self.margins {
            let text = margin.first.take();
            characters.extend(plain(text.as_deref().unwrap_or(&margin.further)));
        }
        characters.extend_from_slice(line);
        let painted = paint(&characters, self.page.is_styled);
        self.lines.push(painted.trim_end().to_owned());
    }
}

/// A text without a style.
fn plain(text: &str) -> Cells {
    styled_text(text, Style::default())
}

#[cfg(test)]
mod tests;
