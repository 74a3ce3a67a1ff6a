//! What serde's attributes say about the JSON form of a type. The schema must describe what serde
//! reads and writes, so an attribute that is not understood here is an error, not ignored.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitStr, Result, Token};

use crate::rename::Case;

/// What the attributes of a type, field or variant say.
#[derive(Debug, Default)]
pub(crate) struct SerdeAttributes {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<Case>,
    /// Whether what is absent gets a default.
    pub(crate) default: bool,
    /// Whether it is left out of what is written at times.
    pub(crate) skipped_at_times: bool,
}

/// Attributes that change nothing about which JSON is written, and nothing about which JSON must be
/// read: some refuse or allow more than the schema promises, which is no matter to the caller.
const HARMLESS: [&str; 6] = [
    "alias",
    "bound",
    "borrow",
    "crate",
    "deny_unknown_fields",
    "expecting",
];

impl SerdeAttributes {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self::default();
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("serde"))
        {
            attribute.parse_nested_meta(|meta| read.take(&meta))?;
        }
        Ok(read)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("rename") {
            self.rename = Some(one_name(meta)?.value());
        } else if meta.path.is_ident("rename_all") {
            let name = one_name(meta)?;
            let known = Case::NAMES.map(|(name, _)| name).join(", ");
            self.rename_all = Some(Case::named(&name.value()).ok_or_else(|| {
                syn::Error::new(name.span(), format!("unknown case; the cases are {known}"))
            })?);
        } else if meta.path.is_ident("default") {
            self.default = true;
            skip_value(meta)?;
        } else if meta.path.is_ident("skip_serializing_if") {
            self.skipped_at_times = true;
            skip_value(meta)?;
        } else if HARMLESS.iter().any(|harmless| meta.path.is_ident(harmless)) {
            skip_value(meta)?;
        } else {
            return Err(meta.error(
                "this attribute changes the JSON form in a way `ToolType` does not follow; \
                 it follows `rename`, `rename_all` and `default`",
            ));
        }
        Ok(())
    }
}

fn one_name(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    if meta.input.peek(syn::token::Paren) {
        return Err(
            meta.error("a tool type has one name for reading and writing: `rename = \"...\"`")
        );
    }
    meta.value()?.parse()
}

fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}
