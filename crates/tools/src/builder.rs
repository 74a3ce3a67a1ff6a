//! Building tools by hand. A builder takes anything and complains once, at the end, about all of it;
//! what it builds needs no further checks.

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
use crate::tool::{CallContext, Handler, Tool};
use crate::tool_type::TypeTooDeep;

/// A tool in the making. Of two calls that say the same thing, the later counts.
#[must_use = "nothing is built before `build`"]
pub struct ToolBuilder {
    name: String,
    description: String,
    schema: Option<Result<Value, ToolProblem>>,
    returns: Option<Value>,
    /// What is returned as a type, where a signature says so.
    promised: Option<Type>,
    handler: Option<MakeHandler>,
    winds_down: bool,
    http_method: Option<HttpMethod>,
    attributes: Option<ToolAttributes>,
    annotations: Option<(Annotations, Trust)>,
}

/// Makes the handler once it is known what the tool promises to return.
type MakeHandler = Box<dyn FnOnce(Option<Type>) -> Handler>;

impl ToolBuilder {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            description: String::new(),
            schema: None,
            returns: None,
            promised: None,
            handler: None,
            winds_down: false,
            http_method: None,
            attributes: None,
            annotations: None,
        }
    }

    /// What the tool does, for the model that may choose it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// What is declared about its use. An agent that declares the tool may ask for more care, never
    /// for less.
    pub fn attributes(mut self, attributes: ToolAttributes) -> Self {
        self.attributes = Some(attributes);
        self
    }

    /// The tool comes from a server that says this about its effects. Its answers are then data and
    /// nothing else, whatever they look like, and it is run by whoever waits for it, so it must not block.
    pub fn annotations(mut self, annotations: Annotations, trust: Trust) -> Self {
        self.annotations = Some((annotations, trust));
        self
    }

    /// What the tool takes and gives, as text such as `(name: Text) --> IO Text` or as a value.
    pub fn signature(mut self, signature: impl IntoSignature) -> Self {
        match signature.into_signature() {
            Ok(signature) => {
                self.schema = Some(Ok(signature.parameters_schema()));
                self.returns = Some(signature.returns_schema());
                self.promised = Some(signature.into_parts().1);
            }
            Err(problem) => self.schema = Some(Err(problem)),
        }
        self
    }

    /// The JSON Schema of the arguments, for tools described elsewhere.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(Ok(schema));
        self
    }

    /// The JSON Schema of the result, for tools described elsewhere.
    pub fn returns(mut self, schema: Value) -> Self {
        self.returns = Some(schema);
        self.promised = None;
        self
    }

    /// What the tool does when it runs, JSON to JSON.
    pub fn handler<F, R>(self, handler: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |arguments, _| Box::pin(handler(arguments)));
        self.runs(false, |_| handler)
    }

    /// What the tool does when it runs, told everything about the call. It is given some seconds to
    /// put things away when the call is to end early.
    pub fn in_context<F, R>(self, handler: F) -> Self
    where
        F: Fn(Value, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let handler: Handler =
            Arc::new(move |arguments, context| Box::pin(handler(arguments, context)));
        self.runs(true, |_| handler)
    }

    /// What the tool does when it runs, in types of Rust. Fields of the result that are `None` are
    /// left out where the signature says that they may be absent.
    pub fn typed<A, F, R, T>(self, handler: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolError>> + Send + 'static,
        T: Serialize,
    {
        self.runs(false, move |promised| {
            let promised = Arc::new(promised);
            Arc::new(move |arguments, _| {
                let running = serde_json::from_value(arguments).map(&handler);
                let promised = Arc::clone(&promised);
                Box::pin(async move {
                    let result = running?.await?;
                    answer(result, promised.as_ref().as_ref())
                })
            })
        })
    }

    /// The tool is a program: arguments on its standard input, the result on its standard output.
    pub fn command(self, command: CommandLine) -> Self {
        self.runs(true, move |promised| {
            let command = Arc::new((command, promised));
            Arc::new(move |arguments, context| {
                let command = Arc::clone(&command);
                Box::pin(async move {
                    command
                        .0
                        .run(&arguments, command.1.as_ref(), &context)
                        .await
                })
            })
        })
    }

    /// The tool is a request to a server.
    pub fn http(mut self, endpoint: HttpEndpoint) -> Self {
        self.http_method = Some(endpoint.method());
        self.runs(false, move |promised| {
            let endpoint = Arc::new((endpoint, promised));
            Arc::new(move |arguments, context| {
                let endpoint = Arc::clone(&endpoint);
                Box::pin(async move {
                    endpoint
                        .0
                        .request(arguments, endpoint.1.as_ref(), &context)
                        .await
                })
            })
        })
    }

    fn runs(
        mut self,
        winds_down: bool,
        make: impl FnOnce(Option<Type>) -> Handler + 'static,
    ) -> Self {
        self.winds_down = winds_down;
        self.handler = Some(Box::new(make));
        self
    }

    /// The tool.
    ///
    /// # Errors
    /// Everything that is wrong with it.
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
            .and_then(arguments_schema)
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
                    handler: handler(self.promised),
                    winds_down: self.winds_down,
                    http_method: self.http_method,
                    attributes: self.attributes.map(Arc::new),
                    annotations: self.annotations,
                    implementation: None,
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

/// Checks what every schema of arguments has in common: arguments are a JSON object.
fn arguments_schema(schema: Value) -> Result<Value, ToolProblem> {
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

/// What can stand for a signature.
pub trait IntoSignature {
    /// The signature, or what is wrong with it.
    ///
    /// # Errors
    /// If it is not a signature.
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

/// Why a tool could not be built: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolBuildError {
    /// The name it was to have.
    pub tool: String,
    /// What is wrong, in the order in which a tool is described.
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

/// One thing that is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolProblem {
    /// Its name is no name.
    #[error("the name is refused: {0}")]
    Name(TextError),
    /// Its name is reserved.
    #[error(transparent)]
    Reserved(ReservedName),
    /// It does not say what it does.
    #[error("the description is empty: say what the tool does, for the model that may choose it")]
    EmptyDescription,
    /// It does not say what it takes.
    #[error("it does not say what it takes: give a `signature` or a `schema`")]
    NoSignature,
    /// Its signature cannot be read.
    #[error("the signature `{text}` is not valid{}", listed(text, diagnostics))]
    SignatureText {
        /// The signature as written.
        text: String,
        /// What is wrong with it, and where.
        diagnostics: Vec<Diagnostic>,
    },
    /// The parts of its signature do not fit together.
    #[error("the signature is not sound: {0}")]
    Signature(#[from] SignatureError),
    /// One of its types has no end.
    #[error(transparent)]
    TypeTooDeep(#[from] TypeTooDeep),
    /// The schema of its arguments is not even an object.
    #[error("the schema of the arguments is not a JSON object: give one with `properties`")]
    SchemaNoObject,
    /// The schema of its arguments describes something else than an object.
    #[error("the schema describes arguments of type {kind}: arguments are an object")]
    ArgumentsNoObject {
        /// The type it describes.
        kind: String,
    },
    /// The schema of its result is no schema.
    #[error("the schema of the result is neither a JSON object nor a boolean")]
    ReturnsNoSchema,
    /// It does nothing.
    #[error("it has nothing to run: give a `handler`, or a `typed` one")]
    NoHandler,
}

/// The findings about a signature, one on a line, each with its column.
fn listed(text: &str, diagnostics: &[Diagnostic]) -> String {
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
