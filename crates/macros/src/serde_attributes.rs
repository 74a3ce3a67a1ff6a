//! Reads serde's attributes about the JSON form of a type. The schema must describe what serde
//! reads and writes, so an attribute that is not supported here is an error.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitStr, Result, Token};

use crate::rename::Case;

/// The serde attributes of a type, field or variant.
#[derive(Debug, Default)]
pub(crate) struct SerdeAttributes {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<Case>,
    /// Whether an absent value gets a default.
    pub(crate) default: bool,
    /// Whether it has `skip_serializing_if`.
    pub(crate) may_be_skipped: bool,
}

/// Attributes that change neither the JSON that is written nor the JSON that must be accepted. Some
/// of them reject or accept more than the schema declares, which does not affect callers.
const IGNORED: [&str; 6] = [
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
            self.rename_all = Some(Case::from_name(&name.value()).ok_or_else(|| {
                syn::Error::new(name.span(), format!("unknown case; the cases are {known}"))
            })?);
        } else if meta.path.is_ident("default") {
            self.default = true;
            skip_value(meta)?;
        } else if meta.path.is_ident("skip_serializing_if") {
            self.may_be_skipped = true;
            skip_value(meta)?;
        } else if IGNORED.iter().any(|ignored| meta.path.is_ident(ignored)) {
            skip_value(meta)?;
        } else {
            return Err(meta.error(
                "`ToolType` does not support this attribute, which changes the JSON form; \
                 it supports `rename`, `rename_all` and `default`",
            ));
        }
        Ok(())
    }
}

fn one_name(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    if meta.input.peek(syn::token::Paren) {
        return Err(
            meta.error("a tool type has one name for reading and writing; use `rename = \"...\"`")
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
