//! The parameters of a tool's function: their names, types, descriptions and defaults, and the errors
//! for what cannot be a parameter. The attributes meant for the tool are removed from the function,
//! because Rust allows neither doc comments nor unknown attributes there.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::{Attribute, Error, FnArg, Meta, Pat, PatType, Signature, Type};

use crate::docs;

/// One parameter, as the tool's schema and the call of the function need it.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) description: Option<String>,
    /// The content of `#[default(...)]`.
    pub(crate) default: Option<TokenStream>,
}

/// Reads the parameters of `signature` and removes the tool's attributes from them. Removes the
/// attributes also if there are errors, so that the user sees only those errors.
pub(crate) fn take_parameters(signature: &mut Signature) -> Result<Vec<Parameter>, Error> {
    let mut parameters = Vec::new();
    let mut errors: Option<Error> = None;
    for argument in &mut signature.inputs {
        let parameter = match argument {
            FnArg::Receiver(receiver) => Err(Error::new_spanned(
                &*receiver,
                "a tool cannot take `self`; write a function outside of `impl`",
            )),
            FnArg::Typed(argument) => {
                let attributes = take_tool_attributes(argument);
                parameter(argument, &attributes)
            }
        };
        match (parameter, &mut errors) {
            (Ok(parameter), _) => parameters.push(parameter),
            (Err(error), Some(errors)) => errors.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }
    errors.map_or(Ok(parameters), Err)
}

/// Removes and returns the attributes meant for the tool.
fn take_tool_attributes(argument: &mut PatType) -> Vec<Attribute> {
    let (ours, theirs) = std::mem::take(&mut argument.attrs)
        .into_iter()
        .partition(|attribute| docs::is_doc(attribute) || attribute.path().is_ident("default"));
    argument.attrs = theirs;
    ours
}

fn parameter(argument: &PatType, attributes: &[Attribute]) -> Result<Parameter, Error> {
    let Pat::Ident(pattern) = &*argument.pat else {
        return Err(Error::new_spanned(
            &argument.pat,
            "a parameter of a tool needs a name; destructure it in the body instead",
        ));
    };
    if pattern.by_ref.is_some() || pattern.subpat.is_some() {
        return Err(Error::new_spanned(
            pattern,
            "a parameter of a tool must be a plain name; remove `ref` or the `@` pattern",
        ));
    }
    check_type(&argument.ty)?;
    Ok(Parameter {
        name: pattern.ident.unraw().to_string(),
        ty: (*argument.ty).clone(),
        description: docs::description(attributes),
        default: default(attributes)?,
    })
}

fn check_type(ty: &Type) -> Result<(), Error> {
    let message = match ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => {
                "a tool takes owned arguments; use `String`"
            }
            Type::Slice(_) => "a tool takes owned arguments; use a `Vec`",
            _ => "a tool takes owned arguments; remove the `&`",
        },
        Type::ImplTrait(_) => "a tool's schema needs one concrete type; name it instead of `impl`",
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, message))
}

fn default(attributes: &[Attribute]) -> Result<Option<TokenStream>, Error> {
    let mut defaults = attributes
        .iter()
        .filter(|attribute| !docs::is_doc(attribute));
    let Some(attribute) = defaults.next() else {
        return Ok(None);
    };
    if let Some(second) = defaults.next() {
        return Err(Error::new_spanned(
            second,
            "a parameter can have only one default; remove this one",
        ));
    }
    match &attribute.meta {
        Meta::List(list) if !list.tokens.is_empty() => Ok(Some(list.tokens.clone())),
        Meta::List(_) | Meta::Path(_) | Meta::NameValue(_) => Err(Error::new_spanned(
            attribute,
            "write the default in parentheses: `#[default(5)]`",
        )),
    }
}
