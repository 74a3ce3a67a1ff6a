//! Where a model is asked: addresses, keys and names, from settings and the environment.

use windlass_core::model::ModelErrorKind;
use windlass_model::{HostedModel, HostedSettings, ModelError};

use super::server::{Reply, Server};
use super::support::{KEY, ask, request};

fn made(
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
async fn another_provider_is_found_by_its_variables() {
    let server = Server::start([Reply::text("Yes.")]).await;
    let variables = [
        ("WINDLASS_MY_LAB_BASE_URL", server.url.as_str()),
        ("WINDLASS_MY_LAB_API_KEY", KEY),
    ];
    let model = made("my-lab/tiny", None, &variables).unwrap();
    assert_eq!(ask(&model, &request()).await.answer.unwrap().text, "Yes.");
    let asked = server.asked().remove(0);
    assert_eq!(
        (asked.path.as_str(), &asked.body["model"]),
        ("/v1/chat/completions", &"tiny".into())
    );
    assert!(
        asked
            .headers
            .contains(&format!("authorization: bearer {KEY}")),
        "{}",
        asked.headers
    );
}

#[tokio::test]
async fn a_server_without_a_key_gets_no_authorization() {
    let server = Server::start([Reply::text("Yes.")]).await;
    let model = made("my-lab/tiny", Some(&server.url), &[]).unwrap();
    assert_eq!(ask(&model, &request()).await.answer.unwrap().text, "Yes.");
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1/chat/completions");
    assert!(
        !asked.headers.contains("authorization"),
        "{}",
        asked.headers
    );
}

#[tokio::test]
async fn a_server_that_wants_a_key_after_all_is_told_of_with_the_variable() {
    let server = Server::start([Reply::status(401, "No.".into())]).await;
    let error = ask(
        &made("my-lab/tiny", Some(&server.url), &[]).unwrap(),
        &request(),
    )
    .await
    .answer
    .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    assert!(
        error
            .message
            .ends_with("Set WINDLASS_MY_LAB_API_KEY to one."),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn the_name_of_a_model_is_sent_as_it_is() {
    let server = Server::start([Reply::text("Yes.")]).await;
    // An effort, a namespace and a size would each be read into these.
    for name in [
        "qwen-high",
        "mixtral-none",
        "vendor::model",
        "org/repo:8b",
        "some-minimal",
    ] {
        let model = made(&format!("my-lab/{name}"), Some(&server.url), &[]).unwrap();
        ask(&model, &request()).await.answer.unwrap();
        let body = server.asked().pop().unwrap().body;
        assert_eq!(body["model"], name);
        assert_eq!(body.get("reasoning_effort"), None);
    }
}

#[tokio::test]
async fn ollama_is_asked_through_its_openai_side() {
    let server = Server::start([Reply::text("Yes.")]).await;
    let host = server
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    for variables in [
        [("OLLAMA_HOST", host)],
        [("OLLAMA_HOST", server.url.trim_end_matches("/v1"))],
    ] {
        let model = made("Ollama/llama3.2", None, &variables).unwrap();
        assert_eq!(ask(&model, &request()).await.answer.unwrap().text, "Yes.");
        assert_eq!(server.asked().pop().unwrap().path, "/v1/chat/completions");
    }
    let shown = format!("{:?}", made("Ollama/llama3.2", None, &[]).unwrap());
    assert!(shown.contains("11434"), "{shown}");
}

#[test]
fn an_address_that_cannot_be_used_is_refused_with_the_reason() {
    let message = |model: &str, url: Option<&str>| made(model, url, &[]).unwrap_err().message;
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
