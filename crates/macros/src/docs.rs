//! Reads doc comments as descriptions.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The first paragraph of the doc comment, its lines joined by spaces; `None` without a doc comment.
pub(crate) fn description(attributes: &[Attribute]) -> Option<String> {
    first_paragraph(attributes.iter().filter_map(line))
}

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The text of one `#[doc = "..."]`, which is what a doc comment turns into. A block comment is one
/// attribute with many lines.
fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if is_doc(attribute) => Some(text.value()),
        _ => None,
    }
}

fn first_paragraph(comments: impl Iterator<Item = String>) -> Option<String> {
    let mut paragraph: Vec<String> = Vec::new();
    for comment in comments {
        let is_block = comment.contains('\n');
        for line in comment.lines().chain(comment.is_empty().then_some("")) {
            let line = match line.trim() {
                // Every line of a block comment starts with a star.
                line if is_block => line.strip_prefix('*').unwrap_or(line).trim_start(),
                line => line,
            };
            match (line.is_empty(), paragraph.is_empty()) {
                (true, true) => {}
                (true, false) => return Some(paragraph.join(" ")),
                (false, _) => paragraph.push(line.to_owned()),
            }
        }
    }
    (!paragraph.is_empty()).then(|| paragraph.join(" "))
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::description;

    #[test]
    fn the_first_paragraph_is_joined_and_trimmed() {
        let attributes = [
            parse_quote!(#[doc = ""]),
            parse_quote!(#[doc = "  Finds a file"]),
            parse_quote!(#[inline]),
            parse_quote!(#[doc = " by its name. "]),
            parse_quote!(#[doc = ""]),
            parse_quote!(#[doc = " Not this."]),
        ];
        assert_eq!(
            description(&attributes).as_deref(),
            Some("Finds a file by its name.")
        );
    }

    #[test]
    fn a_block_comment_is_read_without_its_stars() {
        let attributes =
            [parse_quote!(#[doc = "\n * Finds a file\n * by name.\n *\n * Not this.\n "])];
        assert_eq!(
            description(&attributes).as_deref(),
            Some("Finds a file by name.")
        );
    }

    #[test]
    fn a_blank_doc_comment_is_no_description() {
        assert_eq!(
            description(&[parse_quote!(#[doc = "  "]), parse_quote!(#[doc(hidden)])]),
            None
        );
    }
}
