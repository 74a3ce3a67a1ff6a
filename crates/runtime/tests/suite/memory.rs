//! The memory of runs: its scopes, and that untrusted content stays tainted when it is recalled.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::approval::TenantPrincipal;
use windlass_core::gate::{Decision, Verdict};
use windlass_core::model::ModelAnswer;
use windlass_core::run::{Run, RunEnd};
use windlass_model::{ModelClient, ScriptedModel};
use windlass_runtime::{Crew, Driver, InMemory, Stored};
use windlass_spec::{Agent, AgentName, NonEmptyText, RiskLevel, ToolAttributes};
use windlass_store::{Memory, MemoryScope, NewDocument, ScopeReach, Store};
use windlass_tools::{
    BindingMode, BuiltinSettings, Tool, ToolLibrary, builtin, builtin_specifications,
};

use super::support::{call, finish, identity, new_task};

const CODE: &str = "The code of the vault is willow.";

fn library() -> ToolLibrary {
    let page = Tool::builder("read_page")
        .description("Reads a page of the web")
        .signature("() --> IO Text")
        .attributes(ToolAttributes {
            risk: Some(RiskLevel::Reversible),
            open_world: Some(true),
            ..ToolAttributes::default()
        })
        .handler(|_| async { Ok(json!(CODE)) });
    builtin(&BuiltinSettings::default()).with(page.build().unwrap())
}

fn crew(agent: &str, answers: Vec<ModelAnswer>) -> Crew {
    let instruction = NonEmptyText::new("Remember.").unwrap();
    let model = "OpenAI/gpt-4o-mini".parse().unwrap();
    let mut agent = Agent::new(AgentName::new(agent).unwrap(), model, instruction);
    for tool in builtin_specifications() {
        agent = agent.with_tool(tool).unwrap();
    }
    let library = library();
    let page = library
        .iter()
        .find(|tool| tool.name().as_str() == "read_page");
    let page = page.unwrap().specification().unwrap();
    let agent = agent.with_tool(Arc::new(page)).unwrap();
    let model: Arc<dyn ModelClient> = Arc::new(ScriptedModel::answers(answers));
    let agents = std::slice::from_ref(&agent);
    Crew::assemble(agents, &agent, &library, BindingMode::Exact, &|_| {
        Ok(Arc::clone(&model))
    })
    .unwrap()
}

struct MemoryFixture {
    _directory: tempfile::TempDir,
    store: Arc<Store>,
}

impl MemoryFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("windlass.db")).unwrap();
        Self {
            _directory: directory,
            store: Arc::new(store),
        }
    }

    async fn run_as(&self, who: &TenantPrincipal, agent: &str, answers: Vec<ModelAnswer>) -> Run {
        let stored = Stored::new(Arc::clone(&self.store), who.clone());
        let driver = Driver::new(crew(agent, answers), Arc::new(stored));
        driver.start(new_task("Remember.")).await.unwrap()
    }

    async fn run(&self, answers: Vec<ModelAnswer>) -> Run {
        self.run_as(&identity("ada"), "clerk", answers).await
    }

    fn memory(&self) -> Memory {
        Memory::new(Arc::clone(&self.store))
    }
}

fn own(reach: ScopeReach) -> [MemoryScope; 1] {
    [MemoryScope::new("local", "ada", reach)]
}

fn clerk() -> [MemoryScope; 1] {
    own(ScopeReach::Agent("clerk".to_owned()))
}

fn recall(query: &str) -> ModelAnswer {
    call("recall", json!({ "query": query }))
}

fn look_again() -> ModelAnswer {
    call("search_memories", json!({"query": "anything else"}))
}

fn result(run: &Run, index: usize) -> Value {
    let record = run.calls().nth(index).unwrap();
    record.outcome().unwrap().unwrap().clone()
}

fn decision(run: &Run, index: usize) -> Decision {
    let id = run.calls().nth(index).unwrap().id().clone();
    run.call(&id).unwrap().1.unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn recalled_untrusted_content_taints_the_run() {
    let fixture = MemoryFixture::new();
    let first = fixture
        .run(vec![
            call("read_page", json!({})),
            call("remember", json!({"content": CODE, "title": "Vault"})),
            finish("Done."),
        ])
        .await;
    assert_eq!(first.end(), Some(&RunEnd::Completed));
    assert!(fixture.memory().documents(&clerk(), 0, 9).unwrap()[0].tainted);

    let script = || vec![recall("code of the vault"), look_again(), finish("Done.")];
    let second = fixture.run(script()).await;
    let found = &result(&second, 0)[0];
    assert_eq!(found["text"], CODE);
    assert_eq!(found["title"], "Vault");
    assert_eq!(found["untrusted"], true);
    assert_eq!(found["source"], format!("run:{}", first.id()));
    assert!(!decision(&second, 0).is_tainted());
    assert!(
        decision(&second, 1).is_tainted(),
        "the recalled text is untrusted"
    );
    // It is in the journal, so that another process that resumes the run knows it.
    let folded = fixture.store.fold(second.id()).unwrap();
    let second_call = folded.calls().nth(1).unwrap().id().clone();
    assert!(folded.is_tainted_at(&second_call).unwrap());

    // What it remembers is tainted in turn.
    let third = fixture
        .run(vec![
            recall("code of the vault"),
            call(
                "remember",
                json!({"content": "Willow opens it.", "scope": "principal"}),
            ),
            finish("Done."),
        ])
        .await;
    assert_eq!(third.end(), Some(&RunEnd::Completed));
    assert!(
        fixture
            .memory()
            .documents(&own(ScopeReach::Principal), 0, 9)
            .unwrap()[0]
            .tainted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_an_untainted_run_is_untainted() {
    let fixture = MemoryFixture::new();
    fixture
        .run(vec![
            call("remember", json!({"content": CODE})),
            finish("Done."),
        ])
        .await;
    assert!(!fixture.memory().documents(&clerk(), 0, 9).unwrap()[0].tainted);
    let second = fixture
        .run(vec![
            recall("code of the vault"),
            look_again(),
            finish("Done."),
        ])
        .await;
    assert_eq!(result(&second, 0)[0]["untrusted"], false);
    assert!(!decision(&second, 1).is_tainted());
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_recalled_only_within_its_scope() {
    let fixture = MemoryFixture::new();
    let script = |content: &str, scope: &str| {
        vec![
            call("remember", json!({"content": content, "scope": scope})),
            recall("willow"),
            finish("Done."),
        ]
    };
    let run = fixture.run(script("Willow, says the run.", "run")).await;
    assert_eq!(result(&run, 1)[0]["text"], "Willow, says the run.");
    fixture
        .run(script("Willow, says the clerk.", "agent"))
        .await;
    fixture.run(script("Willow, says Ada.", "principal")).await;

    let texts = |run: &Run| -> Vec<String> {
        let found = result(run, 0);
        let mut texts: Vec<String> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["text"].as_str().unwrap().to_owned())
            .collect();
        texts.sort();
        texts
    };
    let ask = || vec![recall("willow"), finish("Done.")];
    let (ada, bob) = (identity("ada"), identity("bob"));
    let same = fixture.run_as(&ada, "clerk", ask()).await;
    assert_eq!(
        texts(&same),
        ["Willow, says Ada.", "Willow, says the clerk."]
    );
    let other_agent = fixture.run_as(&ada, "porter", ask()).await;
    assert_eq!(texts(&other_agent), ["Willow, says Ada."]);
    let other_person = fixture.run_as(&bob, "clerk", ask()).await;
    assert!(texts(&other_person).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_always_needs_approval() {
    let fixture = MemoryFixture::new();
    let memory = fixture.memory();
    let new = NewDocument::new(CODE, windlass_runtime::now());
    let id = memory.remember(&clerk()[0], new).unwrap().id;
    let run = fixture
        .run(vec![call("forget", json!({ "id": id })), finish("Done.")])
        .await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_eq!(decision(&run, 0).verdict(), Verdict::Ask);
    assert_eq!(memory.documents(&clerk(), 0, 9).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_memory_calls_are_reported_and_do_not_end_the_run() {
    let fixture = MemoryFixture::new();
    let run = fixture
        .run(vec![
            recall("  "),
            call("recall", json!({"query": "x", "max_results": 1000})),
            call("remember", json!({"content": " "})),
            call(
                "store_document",
                json!({"content": "One.\n\nTwo.", "title": "Numbers"}),
            ),
            call("semantic_search", json!({"query": "numbers"})),
            finish("Done."),
        ])
        .await;
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let messages: Vec<String> = run
        .calls()
        .take(3)
        .map(|record| match record.outcome() {
            Some(Err(failure)) => failure.model_message.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        messages[0].contains("the search query is empty"),
        "{messages:?}"
    );
    assert!(messages[1].contains("1 to 50"), "{messages:?}");
    assert!(messages[2].contains("the text is empty"), "{messages:?}");
    let stored = result(&run, 3);
    assert_eq!(stored["chunks"], 1);
    assert_eq!(result(&run, 4)[0]["id"], stored["document_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_tools_fail_in_a_run_that_is_not_stored() {
    let answers = vec![recall("willow"), finish("Done.")];
    let driver = Driver::new(crew("clerk", answers), Arc::new(InMemory::default()));
    let run = driver.start(new_task("Remember.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert!(matches!(
        run.calls().next().unwrap().outcome(),
        Some(Err(_))
    ));
}
