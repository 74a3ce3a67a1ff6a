//! Addresses, keys and model names, from settings and the environment.

use windlass_core::model::ModelErrorKind;
use windlass_model::{HostedModel, HostedSettings, ModelError};

use super::server::{MockReply, MockServer};
use super::support::{KEY, ask, request};

fn new_model(
    model: &str,
    base_url: Option<&str>,
    variables: &[(&str, &str)],
) -> Result<HostedModel, ModelError> {
    let settings = HostedSettings {
        base_url: base_url.map(str::to_owned),
        ..HostedSettings::default()
    };
    HostedModel::with_variables(&model.parse().unwrap(), settings, &|name| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    })
}

#[tokio::test]
async fn another_provider_is_configured_by_its_variables() {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    let variables = [
        ("WINDLASS_MY_LAB_BASE_URL", server.url.as_str()),
        ("WINDLASS_MY_LAB_API_KEY", KEY),
    ];
    let model = new_model("my-lab/tiny", None, &variables).unwrap();
    assert_eq!(ask(&model, &request()).await.answer.unwrap().text, "Yes.");
    let sent = server.requests().remove(0);
    assert_eq!(
        (sent.path.as_str(), &sent.body["model"]),
        ("/v1/chat/completions", &"tiny".into())
    );
    assert!(
        sent.headers
            .contains(&format!("authorization: bearer {KEY}")),
        "{}",
        sent.headers
    );
}

#[tokio::test]
async fn without_a_key_no_authorization_header_is_sent() {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    let model = new_model("my-lab/tiny", Some(&server.url), &[]).unwrap();
    assert_eq!(ask(&model, &request()).await.answer.unwrap().text, "Yes.");
    let sent = server.requests().remove(0);
    assert_eq!(sent.path, "/v1/chat/completions");
    assert!(!sent.headers.contains("authorization"), "{}", sent.headers);
}

#[tokio::test]
async fn the_error_for_a_required_key_names_its_variable() {
    let server = MockServer::start([MockReply::status(401, "No.".into())]).await;
    let error = ask(
        &new_model("my-lab/tiny", Some(&server.url), &[]).unwrap(),
        &request(),
    )
    .await
    .answer
    .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    assert!(
        error.message.ends_with("Set `WINDLASS_MY_LAB_API_KEY`."),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn the_model_name_is_sent_unchanged() {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    // Other clients interpret parts of these as effort, namespace or size.
    for name in [
        "qwen-high",
        "mixtral-none",
        "vendor::model",
        "org/repo:8b",
        "some-minimal",
    ] {
        let model = new_model(&format!("my-lab/{name}"), Some(&server.url), &[]).unwrap();
        ask(&model, &request()).await.answer.unwrap();
        let body = server.requests().pop().unwrap().body;
        assert_eq!(body["model"], name);
        assert_eq!(body.get("reasoning_effort"), None);
    }
}

#[tokio::test]
async fn ollama_is_used_through_its_openai_api() {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    let host = server
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    for variables in [
        [("OLLAMA_HOST", host)],
        [("OLLAMA_HOST", server.url.trim_end_matches("/v1"))],
    ] {
        let model = new_model("Ollama/llama3.2", None, &variables).unwrap();
        assert_eq!(ask(&model, &request()).await.answer.unwrap().text, "Yes.");
        assert_eq!(
            server.requests().pop().unwrap().path,
            "/v1/chat/completions"
        );
    }
    let shown = format!("{:?}", new_model("Ollama/llama3.2", None, &[]).unwrap());
    assert!(shown.contains("11434"), "{shown}");
}

#[test]
fn an_invalid_address_is_refused_with_the_reason() {
    let message = |model: &str, url: Option<&str>| new_model(model, url, &[]).unwrap_err().message;
    insta::assert_snapshot!(
        [
            message("my-lab/tiny", None),
            message("my-lab/tiny", Some("localhost:8080")),
            message("my-lab/tiny", Some("not a url")),
            message("my-lab/tiny", Some("ftp://host/")),
            message("my-lab/tiny", Some("https://someone:password@host/v1")),
        ]
        .join("\n")
    );
}

#[tokio::test]
async fn the_protocol_is_that_of_the_provider_or_the_chosen_one() {
    for (model, protocol, path) in [
        ("OpenAI/gpt-4.1", None, "/v1/chat/completions"),
        ("OpenAI/gpt-5", None, "/v1/chat/completions"),
        ("OpenAI/gpt-5-codex", None, "/v1/responses"),
        ("OpenAI/o3-pro", None, "/v1/responses"),
        ("OpenAI/gpt-5", Some("responses"), "/v1/responses"),
        ("OpenAI/gpt-5-codex", Some("chat"), "/v1/chat/completions"),
        ("my-lab/m", Some("Anthropic"), "/v1/messages"),
        (
            "my-lab/m",
            Some("gemini"),
            "/v1/models/m:streamGenerateContent?alt=sse",
        ),
    ] {
        let server = MockServer::start([MockReply::status(418, "No.".into())]).await;
        let (provider, _) = model.split_once('/').unwrap();
        let provider = provider.to_uppercase().replace('-', "_");
        let variable = format!("WINDLASS_{provider}_PROTOCOL");
        let mut variables = vec![("OPENAI_API_KEY", KEY)];
        variables.extend(protocol.map(|protocol| (variable.as_str(), protocol)));
        let model = new_model(model, Some(&server.url), &variables).unwrap();
        ask(&model, &request()).await.answer.unwrap_err();
        assert_eq!(server.requests()[0].path, path);
    }
    let variables = [("WINDLASS_MY_LAB_PROTOCOL", "soap")];
    let error = new_model("my-lab/m", Some("http://127.0.0.1/"), &variables).unwrap_err();
    assert_eq!(
        error.message,
        "`WINDLASS_MY_LAB_PROTOCOL` is `soap`, which is no protocol. Set it to `chat`, `responses`, `anthropic` or `gemini`."
    );
}

#[tokio::test]
async fn the_query_of_a_base_url_is_kept() {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    let url = format!("{}/deployments/d?api-version=7", server.url);
    let model = new_model("my-lab/tiny", Some(&url), &[]).unwrap();
    ask(&model, &request()).await.answer.unwrap();
    let path = &server.requests()[0].path;
    assert_eq!(path, "/v1/deployments/d/chat/completions?api-version=7");
}

#[test]
fn a_key_that_no_header_can_hold_is_refused_and_not_shown() {
    let variables = [("OPENAI_API_KEY", "secret\nkey")];
    let error = new_model("OpenAI/m", None, &variables).unwrap_err();
    assert_eq!(
        error.message,
        "The key of OpenAI cannot be sent. Check it for characters that do not belong there."
    );
}
