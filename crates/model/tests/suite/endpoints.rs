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
    // `genai` would interpret parts of these as effort, namespace or size.
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
