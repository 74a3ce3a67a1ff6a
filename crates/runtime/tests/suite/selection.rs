//! An agent with hundreds of tools: the model is shown the relevant ones and finds the others, and the journal
//! records which were left out.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use windlass_config::{ConfigSource, Layer, load};
use windlass_core::run::{LeftOutReason, RunEnd};
use windlass_model::{ModelClient, ScriptedModel};
use windlass_runtime::{Configured, Crew, Driver, InMemory};
use windlass_spec::{Agent, CallState};
use windlass_tools::{BindingMode, Tool, ToolLibrary};

use super::support::{call, finish, new_task};

const DEEDS: [&str; 10] = [
    "count",
    "list",
    "sort",
    "rename",
    "archive",
    "export",
    "translate",
    "verify",
    "share",
    "print",
];

const THINGS: [&str; 20] = [
    "invoices",
    "flights",
    "songs",
    "recipes",
    "photos",
    "contracts",
    "tickets",
    "rooms",
    "maps",
    "stamps",
    "letters",
    "bridges",
    "horses",
    "gardens",
    "lamps",
    "clocks",
    "boats",
    "coins",
    "chairs",
    "spoons",
];

/// An agent with two hundred tools, one of which is deprecated.
fn agent_with_many_tools() -> (Agent, ToolLibrary) {
    let mut text = String::from(
        "[busy:Agent {instruction: \"Do what is asked.\", model: \"OpenAI/gpt-4o-mini\"} |\n",
    );
    let mut library = ToolLibrary::new("busy");
    let tools = DEEDS
        .iter()
        .flat_map(|deed| THINGS.iter().map(move |thing| (deed, thing)));
    for (number, (deed, thing)) in tools.enumerate() {
        let (name, description) = (
            format!("{deed}_{thing}"),
            format!("Can {deed} all {thing} of a shop"),
        );
        let comma = if number == 0 { "" } else { ",\n" };
        let deprecated = match name.as_str() {
            "print_maps" => ", deprecated: \"use export_maps\"",
            _ => "",
        };
        let _ = write!(
            text,
            "{comma}  [{name}:Tool {{description: \"{description}\", risk: reversible{deprecated}}} | (shop::Text)==>(::Text)]"
        );
        let tool = Tool::builder(name)
            .description(description)
            .signature("(shop: Text) --> IO Text")
            .handler(|_| async { Ok(json!("done")) });
        library = library.with(tool.build().unwrap());
    }
    text.push(']');
    let file = windlass_spec::read(&text).file.unwrap();
    (file.agents()[0].clone(), library)
}

fn configured(text: &str) -> Configured {
    let source = ConfigSource {
        layer: Layer::Project,
        name: "windlass.toml".to_owned(),
        directory: ".".into(),
        text: text.to_owned(),
    };
    let loaded = load(&[source], [], &[]).unwrap();
    Configured {
        configuration: loaded.configuration,
        ..Configured::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_shown_relevant_tools_and_finds_the_others() {
    let (agent, library) = agent_with_many_tools();
    let script = Arc::new(ScriptedModel::answers([
        call(
            "find_tools",
            json!({"query": "sort the horses", "limit": 3}),
        ),
        call("sort_horses", json!({"shop": "the big one"})),
        finish("Sorted."),
    ]));
    let model: Arc<dyn ModelClient> = Arc::clone(&script) as _;
    let agents = std::slice::from_ref(&agent);
    let crew = Crew::assemble(agents, &agent, &library, BindingMode::Exact, &|_| {
        Ok(Arc::clone(&model))
    })
    .unwrap();
    let text = "[selection]\ntoken_budget = 800\nalways = [\"print_coins\"]\n\
                [categories.analysis_tools.tools.count_songs]\nenabled = false\n";
    crew.configure(&configured(text)).unwrap();
    let driver = Driver::new(crew, Arc::new(InMemory::default()));
    let run = driver
        .start(new_task("Count the invoices of the shop."))
        .await
        .unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let requests = script.requests();
    let shown: Vec<Vec<&str>> = requests
        .iter()
        .map(|request| {
            request
                .tools
                .iter()
                .map(|tool| tool.name().as_str())
                .collect()
        })
        .collect();
    // The relevant tools, the configured one, and the search tool.
    for wanted in ["count_invoices", "print_coins", "find_tools"] {
        assert!(shown[0].contains(&wanted), "{wanted}: {:?}", shown[0]);
    }
    assert!(shown[0].len() < 20, "{:?}", shown[0]);
    assert!(!shown[0].contains(&"sort_horses"));
    // A found tool is shown from then on, and can be called.
    assert!(shown[1].contains(&"sort_horses"), "{:?}", shown[1]);
    let states: Vec<CallState> = run.calls().map(windlass_spec::CallRecord::state).collect();
    assert_eq!(states, [CallState::Success; 2]);
    let offer = run.offer().unwrap();
    assert_eq!(offer.tools.len() + offer.left_out.len(), 200);
    let because = |name: &str| {
        let mut left_out = offer.left_out.iter();
        left_out
            .find(|one| one.tool.as_str() == name)
            .map(|one| one.because)
    };
    assert_eq!(because("count_songs"), Some(LeftOutReason::SwitchedOff));
    assert_eq!(because("print_maps"), Some(LeftOutReason::Deprecated));
    assert_eq!(because("rename_lamps"), Some(LeftOutReason::Budget));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_intent_of_a_task_is_classified_once_and_recorded() {
    let (agent, library) = agent_with_many_tools();
    let model: Arc<dyn ModelClient> =
        Arc::new(ScriptedModel::answers([finish("Done."), finish("Done.")]));
    let agents = std::slice::from_ref(&agent);
    let crew = Crew::assemble(agents, &agent, &library, BindingMode::Exact, &|_| {
        Ok(Arc::clone(&model))
    })
    .unwrap();
    let text = "[selection]\ntoken_budget = 100000\n[intents.tidy]\n\
                examples = [\"tidy up the shop\", \"put the shop in order\", \"clean up this mess\", \
                \"make it neat again\", \"get everything back in its place\", \"sort out the chaos\"]\n\
                tools = [\"sort_chairs\"]\n";
    crew.configure(&configured(text)).unwrap();
    let driver = Driver::new(crew, Arc::new(InMemory::default()));
    let run = driver
        .start(new_task("Please tidy up the shop again"))
        .await
        .unwrap();
    let intent = run.offer().unwrap().intent.clone().unwrap();
    assert_eq!(intent.intent_type, "tidy");
    assert!(
        intent.suggested_tools.contains(&"sort_chairs".to_owned()),
        "{intent:?}"
    );
    // A text that matches no definition has no intent.
    let run = driver
        .start(new_task("Qwzx vlarg brimble foo"))
        .await
        .unwrap();
    assert!(
        run.offer().is_none_or(|offer| offer.intent.is_none()),
        "{:?}",
        run.offer()
    );
}
