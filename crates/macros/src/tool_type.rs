//! The `ToolType` derive: reads a struct or enum and generates the `ToolType` of its JSON form.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Data, DataEnum, DeriveInput, Error, Field, Fields, FieldsNamed, Path, Type, parse_quote,
};

use crate::docs;
use crate::serde_attributes::SerdeAttributes;

const ALLOWED: &str =
    "a tool type must be a struct with named fields or an enum of variants without data";

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    syn::parse2(item)
        .and_then(|input| implementation(&input))
        .unwrap_or_else(Error::into_compile_error)
}

fn implementation(input: &DeriveInput) -> Result<TokenStream, Error> {
    if !input.generics.params.is_empty() {
        let message = "a tool type has one schema; remove the generic parameters";
        return Err(Error::new_spanned(&input.generics, message));
    }
    let root = root(input)?;
    let serde = SerdeAttributes::read(&input.attrs)?;
    let body = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => record(input, &root, &serde, fields)?,
            Fields::Unnamed(_) | Fields::Unit => {
                return Err(Error::new_spanned(&input.ident, ALLOWED));
            }
        },
        Data::Enum(data) => options(input, &root, &serde, data)?,
        Data::Union(_) => return Err(Error::new_spanned(&input.ident, ALLOWED)),
    };
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #root::__private::ToolType for #ident {
            fn tool_type(nesting: #root::__private::Nesting)
                -> ::core::result::Result<#root::__private::Type, #root::__private::TypeTooDeep>
            {
                #body
            }
        }
    })
}

fn root(input: &DeriveInput) -> Result<Path, Error> {
    let mut root = parse_quote!(::windlass);
    for attribute in input
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("tool_type"))
    {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(
                    meta.error("unknown setting; the only setting of a tool type is `crate`")
                );
            }
            root = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(root)
}

fn record(
    input: &DeriveInput,
    root: &Path,
    serde: &SerdeAttributes,
    fields: &FieldsNamed,
) -> Result<TokenStream, Error> {
    let name = input.ident.unraw().to_string();
    let fields = fields
        .named
        .iter()
        .map(|field| self::field(root, serde, field))
        .collect::<Result<Vec<_>, _>>()?;
    // Without fields the variable is unused, and the compiler would warn.
    let nesting = if fields.is_empty() {
        quote!(_)
    } else {
        quote!(nesting)
    };
    Ok(quote! {
        let #nesting = nesting.deeper(#name)?;
        ::core::result::Result::Ok(#root::__private::Type::Record(::std::vec![#(#fields),*]))
    })
}

fn field(root: &Path, container: &SerdeAttributes, field: &Field) -> Result<TokenStream, Error> {
    let serde = SerdeAttributes::read(&field.attrs)?;
    let ident = field
        .ident
        .as_ref()
        .map(|ident| ident.unraw().to_string())
        .unwrap_or_default();
    let name = serde.rename.unwrap_or_else(|| {
        container
            .rename_all
            .map_or(ident.clone(), |case| case.rename_field(&ident))
    });
    let ty = &field.ty;
    if serde.may_be_skipped && !serde.default && !container.default && !is_option(ty) {
        let message =
            "a field with `skip_serializing_if` must be an `Option` or have `#[serde(default)]`";
        return Err(Error::new_spanned(field, message));
    }
    let description = docs::description(&field.attrs).into_iter();
    let optional = (serde.default || container.default).then(|| quote!(#root::__private::optional));
    Ok(quote! {
        #optional(<#ty as #root::__private::ToolType>::field(#name, nesting)?) #(.described(#description))*
    })
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == "Option"))
}

fn options(
    input: &DeriveInput,
    root: &Path,
    serde: &SerdeAttributes,
    data: &DataEnum,
) -> Result<TokenStream, Error> {
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "a tool type needs at least one value; add a variant",
        ));
    }
    let mut options: Vec<String> = Vec::with_capacity(data.variants.len());
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, ALLOWED));
        }
        let ident = variant.ident.unraw().to_string();
        let option = SerdeAttributes::read(&variant.attrs)?
            .rename
            .unwrap_or_else(|| {
                serde
                    .rename_all
                    .map_or(ident.clone(), |case| case.rename_variant(&ident))
            });
        if options.contains(&option) {
            let message =
                format!("two variants have the JSON form `\"{option}\"`; rename one of them");
            return Err(Error::new_spanned(variant, message));
        }
        options.push(option);
    }
    Ok(quote! {
        let _ = nesting;
        ::core::result::Result::Ok(#root::__private::Type::options([#(#options),*]))
    })
}
