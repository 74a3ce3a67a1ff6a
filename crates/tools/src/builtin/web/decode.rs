//! Decodes bytes from the web as text. Only text types are decoded, in the few encodings that pages still
//! use. Everything else is an error; nothing is guessed.

/// The kind of content that a server declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Html,
    OtherText,
    NotText,
}

impl Content {
    /// By the value of the header `Content-Type`.
    pub(super) fn of(content_type: &str) -> Self {
        let kind = content_type.split(';').next().unwrap_or_default();
        let kind = kind.trim().to_ascii_lowercase();
        match kind.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            // A server that declares no type may send text. Other data than UTF-8 is refused later.
            ""
            | "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/x-javascript"
            | "application/yaml"
            | "application/toml"
            | "application/x-ndjson"
            | "application/jsonl" => Self::OtherText,
            other if other.starts_with("text/") => Self::OtherText,
            other if other.ends_with("+json") || other.ends_with("+xml") => Self::OtherText,
            _ => Self::NotText,
        }
    }
}

/// The text, or why it cannot be decoded.
pub(super) fn text(bytes: &[u8], content_type: &str) -> Result<String, String> {
    let content = Content::of(content_type);
    if content == Content::NotText {
        let kind: String = content_type.chars().take(60).collect();
        return Err(format!("is {kind:?} and not text"));
    }
    let bytes = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => rest,
        [0xfe, 0xff, rest @ ..] => return Ok(utf_16(rest, u16::from_be_bytes)),
        [0xff, 0xfe, rest @ ..] => return Ok(utf_16(rest, u16::from_le_bytes)),
        _ => bytes,
    };
    let charset = charset_in_header(content_type).or_else(|| {
        let is_html = content == Content::Html;
        is_html.then(|| charset_in_page(bytes)).flatten()
    });
    match charset.as_deref() {
        // Browsers read these encodings as windows-1252.
        Some(
            "iso-8859-1" | "latin1" | "windows-1252" | "cp1252" | "iso-8859-15" | "us-ascii"
            | "ascii",
        ) => Ok(bytes.iter().map(|&byte| windows_1252(byte)).collect()),
        None | Some("utf-8" | "utf8") => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            // A page with a few invalid characters is still useful.
            Err(_) if charset.is_some() || content == Content::Html => {
                Ok(String::from_utf8_lossy(bytes).into_owned())
            }
            Err(_) => Err("is not UTF-8 text and declares no encoding".to_owned()),
        },
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(format!(
                "uses the encoding {other:?}, which is not supported"
            ))
        }
    }
}

fn charset_in_header(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1);
    let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(value.trim().trim_matches(['"', '\'']).to_ascii_lowercase())
}

/// The encoding that a page declares near its beginning.
fn charset_in_page(bytes: &[u8]) -> Option<String> {
    const SEARCHED_BYTES: usize = 1024;
    let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(SEARCHED_BYTES)]);
    let beginning = beginning.to_ascii_lowercase();
    let (_, after) = beginning.split_once("charset=")?;
    let after = after.trim_start_matches(['"', '\'', ' ']);
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
    let name = &after[..end.unwrap_or(after.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn text_is_decoded_with_the_charset_of_header_or_page() {
        assert_eq!(text("é".as_bytes(), "text/plain").unwrap(), "é");
        assert_eq!(
            text(b"\xe9\x80", "text/plain; charset=ISO-8859-1").unwrap(),
            "é€"
        );
        let page = b"<meta charset=\"windows-1252\"><p>\xe9";
        assert!(text(page, "text/html").unwrap().ends_with('é'));
        assert_eq!(text(b"\xff\xfea\0b\0", "text/plain").unwrap(), "ab");
        assert_eq!(text(b"\xef\xbb\xbf{}", "application/json").unwrap(), "{}");
    }

    #[test]
    fn other_content_than_text_is_refused() {
        assert_eq!(
            text(b"x", "image/png").unwrap_err(),
            "is \"image/png\" and not text"
        );
        assert!(text(b"\xff\x00", "").is_err());
        assert!(
            text(b"x", "text/html; charset=shift_jis")
                .unwrap_err()
                .contains("shift_jis")
        );
    }
}
