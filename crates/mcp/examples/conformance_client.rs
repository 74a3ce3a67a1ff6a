//! The client that the MCP conformance suite drives (`cargo xtask conformance`).
//!
//! It uses a server like a run and answers like a user: it lists the tools, calls each with arguments that
//! match its schema, answers elicitations with the proposed values, and opens login pages. The suite checks
//! it from the server side.
//!
//! The URL of the server is the last argument. `MCP_CONFORMANCE_PROTOCOL_VERSION` is the protocol version of
//! the server. `MCP_CONFORMANCE_CONTEXT` contains what the operator knows: the client registration and the
//! calls to make.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use windlass_http::client_builder;
use windlass_mcp::{
    CallOutcome, CallRequest, Definition, Elicitation, ElicitationReply, Era, OAuthTokens, Server,
    ServerOptions, ShowLoginUrl,
};
use windlass_spec::server::{
    EnvTemplate, HttpTransport, OAuth, ServerName, ServerSettings, Transport,
};

/// The client ID metadata document that the suite expects.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The variable with the client secret.
const SECRET: &str = "CONFORMANCE_CLIENT_SECRET";

/// The tool that gets the schema of another tool, so that the suite can check it.
const ECHO: &str = "json_schema_echo";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let url = env::args()
        .next_back()
        .ok_or("the URL of the server is missing")?;
    let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(context) => serde_json::from_str(&context)?,
        Err(_) => Value::Null,
    };
    let logins = tempfile::tempdir()?;
    let settings = settings(url, &context)?;
    let secret = context["client_secret"].as_str().map(str::to_owned);
    let lookup: windlass_mcp::Lookup =
        Arc::new(move |name: &str| secret.clone().filter(|_| name == SECRET));
    let tokens = OAuthTokens::new(&settings, logins.path(), &lookup)?.with_login(browser());
    let options = ServerOptions {
        era: Some(era()),
        lookup,
        authorizer: Some(Arc::new(tokens)),
        ..ServerOptions::default()
    };
    let server = Server::new(settings, options);
    let outcome = use_all(&server, &context).await;
    server.close().await;
    outcome
}

/// Calls every tool, and then answers the elicitations: a waiting call does not block other calls.
async fn use_all(server: &Server, context: &Value) -> Result<(), Box<dyn Error>> {
    let info = server.connect().await?;
    writeln!(
        io::stdout(),
        "{} speaks {}",
        info.server_name,
        info.protocol_version
    )?;
    let definitions = server.definitions().await?;
    let mut waiting = Vec::new();
    for (index, (tool, arguments)) in calls(&definitions, context).into_iter().enumerate() {
        let request = request(format!("call-{index}"), tool, arguments);
        if let Some(question) = report(&request, server.call(request.clone()).await?)? {
            waiting.push((request, question));
        }
    }
    while let Some((request, question)) = waiting.pop() {
        let outcome = server.reply(request.clone(), answer(&question)).await?;
        if let Some(question) = report(&request, outcome)? {
            waiting.push((request, question));
        }
    }
    Ok(())
}

/// The calls the suite names, or else one for every tool.
fn calls(definitions: &[Definition], context: &Value) -> Vec<(String, Map<String, Value>)> {
    if let Some(named) = context["toolCalls"].as_array() {
        let call = |call: &Value| {
            let arguments = call["arguments"].as_object().cloned();
            let tool = call["name"].as_str().unwrap_or_default();
            (tool.to_owned(), arguments.unwrap_or_default())
        };
        return named.iter().map(call).collect();
    }
    let call = |definition: &Definition| {
        let schema = definition.input_schema().cloned().unwrap_or_default();
        let arguments = match definition.name() {
            ECHO => {
                let other = definitions.iter().find(|other| other.name() != ECHO);
                let schema = other.and_then(Definition::input_schema).cloned();
                Map::from_iter([("schema".to_owned(), schema.unwrap_or_default())])
            }
            _ => fields(&schema),
        };
        (definition.name().to_owned(), arguments)
    };
    definitions.iter().map(call).collect()
}

fn request(key: String, tool: String, arguments: Map<String, Value>) -> CallRequest {
    CallRequest {
        key,
        tool,
        arguments,
        cancel: CancellationToken::new(),
        progress: None,
        output_schema: None,
        max_output_bytes: 1024 * 1024,
        approval: None,
    }
}

/// Prints the outcome of a call. Returns the elicitation, if it is one.
fn report(request: &CallRequest, outcome: CallOutcome) -> io::Result<Option<Elicitation>> {
    match outcome {
        CallOutcome::Answered(answer) => {
            writeln!(io::stdout(), "{} answers {}", request.tool, answer.value)?;
            Ok(None)
        }
        CallOutcome::NeedsInput(question) => {
            writeln!(io::stdout(), "{} asks {question:?}", request.tool)?;
            Ok(Some(question))
        }
    }
}

/// The reply of a user who accepts the proposed values.
fn answer(question: &Elicitation) -> ElicitationReply {
    match question {
        Elicitation::Form { schema, .. } => ElicitationReply::Accept(fields(schema)),
        Elicitation::Url { .. } => ElicitationReply::Decline,
    }
}

/// A value for every field of an object: the proposed one, or a simple one.
fn fields(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object();
    let mut fields = Map::new();
    for (name, schema) in properties.into_iter().flatten() {
        let value = match (
            &schema["default"],
            &schema["enum"][0],
            schema["type"].as_str(),
        ) {
            (Value::Null, Value::Null, Some("string")) => json!("text"),
            (Value::Null, Value::Null, Some("number" | "integer")) => json!(7),
            (Value::Null, Value::Null, Some("boolean")) => json!(true),
            (Value::Null, Value::Null, _) => continue,
            (Value::Null, first, _) => first.clone(),
            (proposed, ..) => proposed.clone(),
        };
        fields.insert(name.clone(), value);
    }
    fields
}

/// The settings of the server.
fn settings(url: String, context: &Value) -> Result<ServerSettings, Box<dyn Error>> {
    let client_id = context["client_id"].as_str().unwrap_or(DOCUMENT);
    let client_secret = match &context["client_secret"] {
        Value::String(_) => Some(EnvTemplate::new(&format!("env:{SECRET}"))?),
        _ => None,
    };
    let transport = Transport::Http(HttpTransport {
        url,
        headers: BTreeMap::new(),
        oauth: Some(OAuth {
            client_id: Some(client_id.to_owned()),
            client_secret,
            scopes: Vec::new(),
        }),
    });
    Ok(ServerSettings::new(ServerName::new("suite")?, transport))
}

fn era() -> Era {
    match env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
        Ok("2026-07-28") => Era::Modern,
        _ => Era::Legacy,
    }
}

/// Opens login pages and follows their redirects, like a browser with a user who agrees.
fn browser() -> ShowLoginUrl {
    Arc::new(|page: &str| {
        let page = page.to_owned();
        tokio::spawn(async move {
            let visit = async { client_builder().build()?.get(page).send().await };
            if let Err(error) = visit.await {
                let _ = writeln!(io::stderr(), "the login page: {error}");
            }
        });
    })
}
