//! HTML character references, such as `&amp;` and `&#8211;`. Only the common names
//! are known; unknown ones stay unchanged.

use std::borrow::Cow;

const NAMES: [(&str, &str); 58] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("sbquo", "‚"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bdquo", "„"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("lsaquo", "‹"),
    ("rsaquo", "›"),
    ("bull", "•"),
    ("middot", "·"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("deg", "°"),
    ("plusmn", "±"),
    ("times", "×"),
    ("divide", "÷"),
    ("frac12", "½"),
    ("frac14", "¼"),
    ("sup2", "²"),
    ("sup3", "³"),
    ("micro", "µ"),
    ("para", "¶"),
    ("sect", "§"),
    ("euro", "€"),
    ("pound", "£"),
    ("yen", "¥"),
    ("cent", "¢"),
    ("larr", "←"),
    ("rarr", "→"),
    ("uarr", "↑"),
    ("darr", "↓"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("agrave", "à"),
    ("ccedil", "ç"),
    ("ntilde", "ñ"),
    ("shy", ""),
    ("zwnj", ""),
    ("zwj", ""),
];

/// The maximum length of a reference.
const MAX_LENGTH: usize = 12;

/// The text with its references replaced.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_LENGTH).position(|byte| byte == b';');
        match end.and_then(|end| Some((end, replacement(&rest[1..end])?))) {
            Some((end, replacement)) => {
                out.push_str(&replacement);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn replacement(name: &str) -> Option<Cow<'static, str>> {
    let Some(number) = name.strip_prefix('#') else {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        return known.map(|&(_, text)| Cow::Borrowed(text));
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let character = char::from_u32(code).filter(|&character| character != '\0');
    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some(Cow::Owned(character.to_string()))
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn known_references_are_decoded_and_others_stay() {
        assert_eq!(decoded("a &amp; b &#233;&#xE9; &lt;i&gt;"), "a & b éé <i>");
        assert_eq!(
            decoded("R&D &unknown; & &;&#; &#xD800;"),
            "R&D &unknown; & &;&#; \u{fffd}"
        );
        assert_eq!(decoded("&é&é&é&é&é&é;"), "&é&é&é&é&é&é;");
    }
}
