//! JSON with comments and trailing commas, as in settings files.

/// The text as plain JSON of the same length, so that error positions stay valid.
pub(super) fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // The position of the last comma, as long as only whitespace follows it.
    let mut comma = None;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('"', _) => {
                plain.push(c);
                comma = None;
                while let Some(c) = rest.next() {
                    plain.push(c);
                    if c == '\\' {
                        plain.extend(rest.next());
                    } else if c == '"' {
                        break;
                    }
                }
            }
            ('/', Some('/')) => {
                plain.push(' ');
                while let Some(c) = rest.next_if(|c| *c != '\n') {
                    blank(&mut plain, c);
                }
            }
            ('/', Some('*')) => {
                plain.push(' ');
                let mut before = ' ';
                rest.next();
                plain.push(' ');
                for c in rest.by_ref() {
                    blank(&mut plain, c);
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            (',', _) => {
                comma = Some(plain.len());
                plain.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma = None;
                }
                plain.push(c);
            }
        }
    }
    plain
}

/// Adds as many spaces as a character has bytes. Line breaks are kept.
fn blank(plain: &mut String, c: char) {
    match c {
        '\n' => plain.push('\n'),
        c => (0..c.len_utf8()).for_each(|_| plain.push(' ')),
    }
}
