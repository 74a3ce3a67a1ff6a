//! Building tools by hand. A builder accepts anything and reports all problems at the end, in `build`.
//! The tools it builds need no further checks.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::risk::{Annotations, Trust};
use windlass_gram::{Diagnostic, LineIndex};
use windlass_spec::reserved::{ReservedName, check_name};
use windlass_spec::{
    NonEmptyText, Signature, SignatureError, TextError, ToolAttributes, ToolName, Type,
};

use crate::answer::answer;
use crate::command::CommandLine;
use crate::error::ToolError;
use crate::http::{HttpEndpoint, HttpMethod};
use crate::tool::{CallContext, Handler, Implementation, Tool};
use crate::tool_type::TypeTooDeep;

/// A builder for a tool. If a method is called twice, the last call counts.
#[must_use = "nothing is built before `build`"]
pub struct ToolBuilder {
    name: String,
    description: String,
    schema: Option<Result<Value, ToolProblem>>,
    returns: Option<Value>,
    /// The result type, if a signature declares it.
    declared: Option<Type>,
    handler: Option<MakeHandler>,
    cleans_up: bool,
    http_method: Option<HttpMethod>,
    attributes: Option<ToolAttributes>,
    annotations: Option<(Annotations, Trust)>,
    has_envelopes: bool,
    source: Option<Implementation>,
}

/// Makes the handler once the declared result type is known.
type MakeHandler = Box<dyn FnOnce(Option<Type>) -> Handler>;

impl ToolBuilder {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            description: String::new(),
            schema: None,
            returns: None,
            declared: None,
            handler: None,
            cleans_up: false,
            http_method: None,
            attributes: None,
            annotations: None,
            has_envelopes: true,
            source: None,
        }
    }

    /// Sets what the tool does, for the model that may choose it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the attributes. An agent that declares the tool may make them stricter, never
    /// weaker.
    pub fn attributes(mut self, attributes: ToolAttributes) -> Self {
        self.attributes = Some(attributes);
        self
    }

    /// Sets the annotations of the MCP server that the tool comes from. Its results are then plain data and not
    /// read as envelopes, unless [`Self::envelopes`] says so. It runs in the caller's task, so it must not block.
    pub fn annotations(mut self, annotations: Annotations, trust: Trust) -> Self {
        self.annotations = Some((annotations, trust));
        self.has_envelopes = false;
        self
    }

    /// Sets whether its answers are read as envelopes, if they are one. Without this call they are. Use `false` for a
    /// tool whose own data only looks like an envelope.
    pub fn envelopes(mut self, are_read: bool) -> Self {
        self.has_envelopes = are_read;
        self
    }

    /// Sets the signature, as text such as `(name: Text) --> IO Text` or as a value.
    pub fn signature(mut self, signature: impl IntoSignature) -> Self {
        match signature.into_signature() {
            Ok(signature) => {
                self.schema = Some(Ok(signature.parameters_schema()));
                self.returns = Some(signature.returns_schema());
                self.declared = Some(signature.into_parts().1);
            }
            Err(problem) => self.schema = Some(Err(problem)),
        }
        self
    }

    /// Sets the JSON Schema of the arguments, for tools described elsewhere.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(Ok(schema));
        self
    }

    /// Sets the JSON Schema of the result, for tools described elsewhere.
    pub fn returns(mut self, schema: Value) -> Self {
        self.returns = Some(schema);
        self.declared = None;
        self
    }

    /// Sets the implementation, from JSON to JSON.
    pub fn handler<F, R>(self, handler: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |arguments, _| Box::pin(handler(arguments)));
        self.with_handler(false, |_| handler)
    }

    /// Sets an implementation that gets the context of the call. It has some seconds to
    /// clean up when the call must end early.
    pub fn handler_with_context<F, R>(self, handler: F) -> Self
    where
        F: Fn(Value, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let handler: Handler =
            Arc::new(move |arguments, context| Box::pin(handler(arguments, context)));
        self.with_handler(true, |_| handler)
    }

    /// Sets an implementation with Rust types. Fields of the result that are `None` are
    /// omitted if the signature allows them to be absent.
    pub fn typed<A, F, R, T>(self, handler: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolError>> + Send + 'static,
        T: Serialize,
    {
        self.typed_with_context(move |arguments, _| handler(arguments))
    }

    /// Like [`Self::typed`], with the context of the call.
    pub(crate) fn typed_with_context<A, F, R, T>(self, handler: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolError>> + Send + 'static,
        T: Serialize,
    {
        self.with_handler(false, move |declared| {
            let declared = Arc::new(declared);
            Arc::new(move |arguments, context| {
                let running = serde_json::from_value(arguments);
                let running = running.map(|arguments| handler(arguments, context));
                let declared = Arc::clone(&declared);
                Box::pin(async move {
                    let result = running?.await?;
                    answer(result, declared.as_ref().as_ref())
                })
            })
        })
    }

    /// Makes the tool a program: arguments on its standard input, the result on its standard output.
    pub fn command(self, command: CommandLine) -> Self {
        let source = Implementation::Command(command.clone());
        let builder = self.with_handler(true, move |declared| {
            let command = Arc::new((command, declared));
            Arc::new(move |arguments, context| {
                let command = Arc::clone(&command);
                Box::pin(async move {
                    command
                        .0
                        .run(&arguments, command.1.as_ref(), &context)
                        .await
                })
            })
        });
        Self {
            source: Some(source),
            ..builder
        }
    }

    /// Makes the tool an HTTP request.
    pub fn http(mut self, endpoint: HttpEndpoint) -> Self {
        self.http_method = Some(endpoint.method());
        let source = Implementation::Http(endpoint.clone());
        let builder = self.with_handler(false, move |declared| {
            let endpoint = Arc::new((endpoint, declared));
            Arc::new(move |arguments, context| {
                let endpoint = Arc::clone(&endpoint);
                Box::pin(async move {
                    endpoint
                        .0
                        .request(arguments, endpoint.1.as_ref(), &context)
                        .await
                })
            })
        });
        Self {
            source: Some(source),
            ..builder
        }
    }

    fn with_handler(
        mut self,
        cleans_up: bool,
        make: impl FnOnce(Option<Type>) -> Handler + 'static,
    ) -> Self {
        self.cleans_up = cleans_up;
        self.source = None;
        self.handler = Some(Box::new(make));
        self
    }

    /// Builds the tool.
    ///
    /// # Errors
    /// All problems of the tool.
    pub fn build(self) -> Result<Tool, ToolBuildError> {
        let mut problems = Vec::new();
        let name = ToolName::new(self.name.clone())
            .map_err(|error| problems.push(ToolProblem::Name(error)));
        if let Err(error) = check_name(&self.name) {
            problems.push(ToolProblem::Reserved(error));
        }
        let description = NonEmptyText::new(self.description)
            .map_err(|_| problems.push(ToolProblem::EmptyDescription));
        let schema = self
            .schema
            .unwrap_or(Err(ToolProblem::NoSignature))
            .and_then(check_arguments_schema)
            .map_err(|problem| problems.push(problem));
        if self
            .returns
            .as_ref()
            .is_some_and(|schema| !schema.is_object() && !schema.is_boolean())
        {
            problems.push(ToolProblem::ReturnsNoSchema);
        }
        let handler = self
            .handler
            .ok_or(())
            .map_err(|()| problems.push(ToolProblem::NoHandler));
        match (name, description, schema, handler) {
            (Ok(name), Ok(description), Ok(schema), Ok(handler)) if problems.is_empty() => {
                Ok(Tool {
                    name,
                    description,
                    schema,
                    returns: self.returns,
                    handler: handler(self.declared),
                    cleans_up: self.cleans_up,
                    http_method: self.http_method,
                    attributes: self.attributes.map(Arc::new),
                    annotations: self.annotations,
                    has_envelopes: self.has_envelopes,
                    implementation: None,
                    source: self.source.map(Arc::new),
                    not_configured: None,
                    split: None,
                })
            }
            _ => Err(ToolBuildError {
                tool: self.name,
                problems,
            }),
        }
    }
}

/// Checks that a schema of arguments describes a JSON object.
fn check_arguments_schema(schema: Value) -> Result<Value, ToolProblem> {
    match &schema {
        Value::Object(keywords) => match keywords.get("type") {
            Some(kind) if kind != "object" => Err(ToolProblem::ArgumentsNoObject {
                kind: kind.to_string(),
            }),
            _ => Ok(schema),
        },
        _ => Err(ToolProblem::SchemaNoObject),
    }
}

/// Conversion into a signature.
pub trait IntoSignature {
    /// The signature.
    ///
    /// # Errors
    /// If it is not a valid signature.
    fn into_signature(self) -> Result<Signature, ToolProblem>;
}

impl IntoSignature for Signature {
    fn into_signature(self) -> Result<Signature, ToolProblem> {
        Ok(self)
    }
}

impl IntoSignature for &str {
    fn into_signature(self) -> Result<Signature, ToolProblem> {
        Signature::parse(self).map_err(|diagnostics| ToolProblem::SignatureText {
            text: self.to_owned(),
            diagnostics,
        })
    }
}

impl IntoSignature for String {
    fn into_signature(self) -> Result<Signature, ToolProblem> {
        self.as_str().into_signature()
    }
}

impl<E: Into<ToolProblem>> IntoSignature for Result<Signature, E> {
    fn into_signature(self) -> Result<Signature, ToolProblem> {
        self.map_err(Into::into)
    }
}

/// Why a tool could not be built: all its problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolBuildError {
    /// The name of the tool.
    pub tool: String,
    /// The problems, in the order in which a tool is described.
    pub problems: Vec<ToolProblem>,
}

impl std::error::Error for ToolBuildError {}

impl fmt::Display for ToolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool `{}` cannot be built", self.tool)?;
        for problem in &self.problems {
            for line in problem.to_string().lines() {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

/// One problem of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolProblem {
    /// Its name is not valid.
    #[error("the name is not valid: {0}")]
    Name(TextError),
    /// Its name is reserved.
    #[error(transparent)]
    Reserved(ReservedName),
    /// It has no description.
    #[error(
        "the description is empty: describe what the tool does, for the model that may choose it"
    )]
    EmptyDescription,
    /// It declares no parameters.
    #[error("it does not declare its parameters: give a `signature` or a `schema`")]
    NoSignature,
    /// Its signature cannot be parsed.
    #[error(
        "the signature `{text}` is not valid{}",
        list_errors(text, diagnostics)
    )]
    SignatureText {
        /// The signature as written.
        text: String,
        /// The errors with their positions.
        diagnostics: Vec<Diagnostic>,
    },
    /// Its signature is inconsistent.
    #[error("the signature is inconsistent: {0}")]
    Signature(#[from] SignatureError),
    /// One of its types nests too deep.
    #[error(transparent)]
    TypeTooDeep(#[from] TypeTooDeep),
    /// The schema of its arguments is not a JSON object.
    #[error("the schema of the arguments is not a JSON object: give one with `properties`")]
    SchemaNoObject,
    /// The schema of its arguments describes another type than an object.
    #[error("the schema describes arguments of type {kind}: arguments must be an object")]
    ArgumentsNoObject {
        /// The type it describes.
        kind: String,
    },
    /// The schema of its result is not a schema.
    #[error("the schema of the result is neither a JSON object nor a boolean")]
    ReturnsNoSchema,
    /// It has no implementation.
    #[error("it has no implementation: give a `handler`, or a `typed` one")]
    NoHandler,
}

/// The errors of a signature, one per line, each with its column.
fn list_errors(text: &str, diagnostics: &[Diagnostic]) -> String {
    let index = LineIndex::new(text);
    diagnostics
        .iter()
        .map(|finding| {
            let position = index.position(finding.span.start);
            let hint = finding
                .hint
                .as_ref()
                .map(|hint| format!("\n    hint: {hint}"))
                .unwrap_or_default();
            format!(
                "\n  {}:{}: {}{hint}",
                position.line, position.column, finding.message
            )
        })
        .collect()
}
