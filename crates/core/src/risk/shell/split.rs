//! Splits a command line as a shell would: commands of words, redirections of output, and nested command
//! lines (`$(...)`, backquotes). Here-documents are not supported; their lines count as commands, which
//! raises the risk.

use std::iter::Peekable;
use std::str::Chars;

/// The parts of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) commands: Vec<Vec<String>>,
    pub(super) redirects: Vec<Redirect>,
    /// Command lines that run as part of this one.
    pub(super) inner: Vec<String>,
}

/// Output redirected to a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) appends: bool,
    pub(super) target: String,
}

/// Splits a line; `None` if a quote or a substitution is not closed.
pub(super) fn split(text: &str) -> Option<Line> {
    let mut splitter = Splitter {
        chars: text.chars().peekable(),
        line: Line::default(),
        command: Vec::new(),
        word: None,
        redirect: None,
    };
    splitter.run()?;
    Some(splitter.line)
}

struct Splitter<'t> {
    chars: Peekable<Chars<'t>>,
    line: Line,
    command: Vec<String>,
    /// The current word. An empty one was quoted.
    word: Option<String>,
    /// Set if the next word is the target of a redirection, and whether it appends.
    redirect: Option<bool>,
}

impl Splitter<'_> {
    fn run(&mut self) -> Option<()> {
        while let Some(c) = self.chars.next() {
            match c {
                '\n' | ';' | '|' | '(' | ')' => self.end_command(),
                '&' if self.chars.peek() == Some(&'>') => {
                    self.end_word();
                }
                '&' => self.end_command(),
                '>' => self.output(),
                '<' => {
                    self.end_word();
                    while self
                        .chars
                        .next_if(|c| matches!(c, '<' | '&' | '-'))
                        .is_some()
                    {}
                    // The input file is neither a command nor an argument.
                }
                '#' if self.word.is_none() => while self.chars.next_if(|&c| c != '\n').is_some() {},
                '\\' => match self.chars.next() {
                    Some('\n') => {}
                    Some(c) => self.push(c),
                    None => return None,
                },
                '\'' => {
                    self.word.get_or_insert_default();
                    loop {
                        match self.chars.next()? {
                            '\'' => break,
                            c => self.push(c),
                        }
                    }
                }
                '"' => self.double_quoted()?,
                '`' => self.backquoted()?,
                '$' => self.dollar()?,
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command();
        Some(())
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirect.take() {
            Some(appends) => self.line.redirects.push(Redirect {
                appends,
                target: word,
            }),
            None => self.command.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirect = None;
        if !self.command.is_empty() {
            self.line.commands.push(std::mem::take(&mut self.command));
        }
    }

    fn output(&mut self) {
        // `2>`: the number before is the file descriptor, not a word.
        let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        let appends = self.chars.next_if_eq(&'>').is_some();
        if self.chars.next_if_eq(&'&').is_some() {
            // `>&2`: to another file descriptor.
            let mut to_output = false;
            while self
                .chars
                .next_if(|c| c.is_ascii_digit() || *c == '-')
                .is_some()
            {
                to_output = true;
            }
            if to_output {
                return;
            }
        }
        self.chars.next_if_eq(&'|');
        if self.chars.peek() == Some(&'(') {
            return;
        }
        self.redirect = Some(appends);
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '\\' => {
                    let c = self.chars.next()?;
                    self.push(c);
                }
                '`' => self.backquoted()?,
                '$' => self.dollar()?,
                c => self.push(c),
            }
        }
    }

    fn backquoted(&mut self) -> Option<()> {
        let mut inner = String::new();
        loop {
            match self.chars.next()? {
                '`' => break,
                '\\' => inner.push(self.chars.next()?),
                c => inner.push(c),
            }
        }
        self.line.inner.push(inner);
        self.push('$');
        Some(())
    }

    /// Reads what follows a dollar sign. The value of the word is not known before the line runs; the
    /// dollar sign in it marks that.
    fn dollar(&mut self) -> Option<()> {
        self.push('$');
        if self.chars.next_if_eq(&'(').is_none() {
            return Some(());
        }
        let mut inner = String::new();
        let mut depth = 1;
        let mut quote = None;
        loop {
            let c = self.chars.next()?;
            match (c, quote) {
                ('\\', None | Some('"')) => {
                    inner.push(c);
                    inner.push(self.chars.next()?);
                    continue;
                }
                ('\'' | '"', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                ('(', None) => depth += 1,
                (')', None) => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(c);
        }
        // `$((1 + 2))` is arithmetic and runs nothing.
        let computes =
            inner.starts_with('(') && inner.ends_with(')') && !inner.contains(['$', '`']);
        if !computes {
            self.line.inner.push(inner);
        }
        Some(())
    }
}
