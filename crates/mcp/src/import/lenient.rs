//! JSON as people write it into settings: with comments, and with commas after the last item.

/// The text as plain JSON of the same length, so that places in it stay what they are.
pub(super) fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // Where the last comma is, as long as nothing but blanks came after it.
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

/// As many blanks as a character has bytes; lines stay.
fn blank(plain: &mut String, c: char) {
    match c {
        '\n' => plain.push('\n'),
        c => (0..c.len_utf8()).for_each(|_| plain.push(' ')),
    }
}
