//! The `#[tool]` attribute: reads a function and generates it again with the constructor of a tool
//! that calls it.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{
    Error, GenericArgument, ItemFn, LitStr, Path, PathArguments, ReturnType, Safety, Type,
    parse_quote,
};

use crate::docs;
use crate::parameter::{self, Parameter};

pub(crate) fn expand(settings: TokenStream, item: TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item) {
        Ok(function) => function,
        Err(error) => {
            let message = format!("`#[tool]` needs a function with a body: {error}");
            return Error::new(error.span(), message).into_compile_error();
        }
    };
    let parameters = parameter::take_parameters(&mut function.sig);
    let constructor = Settings::read(settings)
        .and_then(|settings| Declaration::read(settings, &function, parameters))
        .map_or_else(Error::into_compile_error, |declaration| {
            declaration.constructor(&function)
        });
    quote! {
        #function
        #constructor
    }
}

/// The settings in the parentheses of the attribute.
struct Settings {
    name: Option<LitStr>,
    description: Option<LitStr>,
    root: Path,
}

impl Settings {
    fn read(tokens: TokenStream) -> Result<Self, Error> {
        let mut settings = Self {
            name: None,
            description: None,
            root: parse_quote!(::windlass),
        };
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                settings.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("description") {
                settings.description = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("crate") {
                settings.root = meta.value()?.call(Path::parse_mod_style)?;
            } else {
                return Err(meta.error(
                    "unknown setting; the settings of a tool are `name`, `description` and `crate`",
                ));
            }
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(settings)
    }
}

/// Everything the constructor declares about the tool.
struct Declaration {
    root: Path,
    name: String,
    description: String,
    parameters: Vec<Parameter>,
    output: Type,
    /// Whether the function can fail.
    fallible: bool,
}

impl Declaration {
    /// Reads the function and reports all errors together.
    fn read(
        settings: Settings,
        function: &ItemFn,
        parameters: Result<Vec<Parameter>, Error>,
    ) -> Result<Self, Error> {
        let mut errors = Errors(None);
        errors.collect(check_signature(function));
        let parameters = errors.collect(parameters);
        let name = errors.collect(name(&settings, function));
        let description = errors.collect(description(&settings, function));
        let output = errors.collect(output(function));
        errors.finish()?;
        let (Some(parameters), Some(name), Some(description), Some((output, fallible))) =
            (parameters, name, description, output)
        else {
            // Unreachable: an error was collected for each missing part, and `finish` returned them.
            return Err(Error::new(Span::call_site(), "this function is not a tool"));
        };
        Ok(Self {
            root: settings.root,
            name,
            description,
            parameters,
            output,
            fallible,
        })
    }

    fn constructor(&self, function: &ItemFn) -> TokenStream {
        let Self {
            root,
            name,
            description,
            output,
            ..
        } = self;
        let visibility = &function.vis;
        let conditions = function
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("cfg"));
        let constructor = format_ident!(
            "{}_tool",
            function.sig.ident.unraw(),
            span = function.sig.ident.span()
        );
        let documentation = format!("The tool `{name}`: {description}");
        let parameters = self
            .parameters
            .iter()
            .map(|parameter| self.parameter(parameter));
        let call = self.call(function);
        let arguments = if self.parameters.is_empty() {
            quote!(_)
        } else {
            quote!(mut __arguments)
        };
        quote! {
            #(#conditions)*
            #[doc = #documentation]
            ///
            /// # Errors
            /// If a type contains itself, or a default does not fit its type.
            #visibility fn #constructor()
                -> ::core::result::Result<#root::__private::Tool, #root::__private::ToolBuildError>
            {
                #root::__private::NativeTool::new(#name, #description)
                    #(#parameters)*
                    .returning::<#output, _, _>(
                        |#arguments: #root::__private::Arguments| async move { #call },
                    )
            }
        }
    }

    fn parameter(&self, parameter: &Parameter) -> TokenStream {
        let root = &self.root;
        let Parameter {
            name,
            ty,
            description,
            default,
        } = parameter;
        let describe = description.iter();
        let default = default.iter();
        quote! {
            .parameter::<#ty>(#name)
            #(.described(#describe))*
            #(.with_default(#root::__private::json!(#default)))*
        }
    }

    /// Calls the function with the arguments taken by name. They are not bound to variables, because
    /// a variable could shadow the function.
    fn call(&self, function: &ItemFn) -> TokenStream {
        let root = &self.root;
        let callee = &function.sig.ident;
        let arguments = self.parameters.iter().map(|Parameter { name, ty, .. }| {
            quote_spanned!(ty.span()=> __arguments.take::<#ty>(#name)?)
        });
        let wait = function.sig.asyncness.map(|_| quote!(.await));
        let call = quote!(#callee(#(#arguments),*)#wait);
        if self.fallible {
            quote!(#call.map_err(#root::__private::error_of_tool))
        } else {
            quote!(::core::result::Result::Ok(#call))
        }
    }
}

/// Checks that the constructor can call the function: not generic, not variadic, not unsafe.
fn check_signature(function: &ItemFn) -> Result<(), Error> {
    let generics = &function.sig.generics;
    if !generics.params.is_empty() {
        let message = "a tool has one schema; remove the generic parameters of its function";
        return Err(Error::new_spanned(generics, message));
    }
    if let Some(variadic) = &function.sig.variadic {
        return Err(Error::new_spanned(
            variadic,
            "a tool's parameters must have names; remove the variadic parameter",
        ));
    }
    if let Safety::Unsafe(unsafety) = &function.sig.safety {
        let message = "a tool must be safe to call; remove `unsafe`";
        return Err(Error::new_spanned(unsafety, message));
    }
    Ok(())
}

fn name(settings: &Settings, function: &ItemFn) -> Result<String, Error> {
    match &settings.name {
        None => Ok(function.sig.ident.unraw().to_string()),
        Some(name) if name.value().trim().is_empty() => Err(Error::new(
            name.span(),
            "the name of a tool must not be empty",
        )),
        Some(name) => Ok(name.value()),
    }
}

fn description(settings: &Settings, function: &ItemFn) -> Result<String, Error> {
    match &settings.description {
        Some(description) if description.value().trim().is_empty() => Err(Error::new(
            description.span(),
            "the description of a tool must not be empty",
        )),
        Some(description) => Ok(description.value().trim().to_owned()),
        None => docs::description(&function.attrs).ok_or_else(|| {
            Error::new(
                function.sig.ident.span(),
                "a tool needs a description, which models choose it by; \
                 write a doc comment or `#[tool(description = \"...\")]`",
            )
        }),
    }
}

/// The type of the result, and whether the function returns it in a `Result`.
fn output(function: &ItemFn) -> Result<(Type, bool), Error> {
    let ReturnType::Type(_, ty) = &function.sig.output else {
        return Err(Error::new_spanned(
            &function.sig,
            "a tool must return a value; return for example a text about what was done",
        ));
    };
    match &**ty {
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "a tool's schema needs one concrete type; name it instead of `impl`",
        )),
        Type::Reference(_) => Err(Error::new_spanned(ty, "a tool must return an owned type")),
        ty => {
            Ok(success(ty).map_or_else(|| (ty.clone(), false), |success| (success.clone(), true)))
        }
    }
}

/// `T` of `Result<T, E>`, or of an alias such as `io::Result<T>`.
fn success(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else {
        return None;
    };
    let last = path
        .path
        .segments
        .last()
        .filter(|segment| segment.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Errors collected so far, so that one run of the compiler shows them all.
struct Errors(Option<Error>);

impl Errors {
    fn collect<T>(&mut self, outcome: Result<T, Error>) -> Option<T> {
        match (outcome, &mut self.0) {
            (Ok(value), _) => Some(value),
            (Err(error), Some(errors)) => {
                errors.combine(error);
                None
            }
            (Err(error), none) => {
                *none = Some(error);
                None
            }
        }
    }

    fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}
