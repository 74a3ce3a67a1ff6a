#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn text(content: &str) -> NonEmptyText {
    NonEmptyText::new(content).unwrap()
}

fn tool_returning(name: &'static str) -> Tool {
    Tool::builder("search")
        .description("Searches")
        .signature("(query: Text) --> IO Text")
        .handler(move |_: Value| async move { Ok(json!(name)) })
        .build()
        .unwrap()
}

fn split(weights: &[(&'static str, f64)]) -> Result<Split, SplitError> {
    let variant = |(name, weight): &(&'static str, f64)| ToolVariant {
        name: text(name),
        weight: *weight,
        tool: tool_returning(name),
    };
    Split::new(text("ranking"), weights.iter().map(variant).collect())
}

fn counted(split: &Split, name: &str) -> usize {
    let tool = ToolName::new("search").unwrap();
    (0..10_000)
        .filter(|number| {
            let principal = format!("user-{number}");
            split.variant_of(&tool, "acme", &principal).name.as_str() == name
        })
        .count()
}

#[test]
fn principals_are_split_by_weight() {
    let even = split(&[("old", 1.0), ("new", 1.0)]).unwrap();
    assert!((4_800..5_200).contains(&counted(&even, "new")));
    let uneven = split(&[("old", 9.0), ("new", 1.0)]).unwrap();
    assert!((900..1_100).contains(&counted(&uneven, "new")));
    let off = split(&[("old", 1.0), ("new", 0.0), ("newer", 1.0)]).unwrap();
    assert_eq!(counted(&off, "new"), 0);
}

#[test]
fn assignments_never_change() {
    // Fixed values, because another hash function would silently reassign all principals.
    let tool = ToolName::new("search").unwrap();
    let split = split(&[("old", 1.0), ("new", 1.0)]).unwrap();
    let of = |principal: &str| split.variant_of(&tool, "local", principal).name.to_string();
    let assigned: Vec<String> = ["ada", "bob", "cyd", "dan", "eve", "fay"].map(of).into();
    assert_eq!(assigned.join(" "), "new old new new old new");
}

#[test]
fn a_larger_share_moves_no_principal_back() {
    let before = split(&[("old", 9.0), ("new", 1.0)]).unwrap();
    let after = split(&[("old", 8.0), ("new", 2.0)]).unwrap();
    let tool = ToolName::new("search").unwrap();
    let mut moved_back = 0;
    for number in 0..2_000 {
        let principal = format!("user-{number}");
        let of = |split: &Split| split.variant_of(&tool, "acme", &principal).name.to_string();
        moved_back += usize::from(of(&before) == "new" && of(&after) == "old");
    }
    assert_eq!(moved_back, 0);
}

#[test]
fn a_call_keeps_the_implementation_it_began_with() {
    let tool = tool_returning("outer").split(split(&[("old", 1.0), ("new", 1.0)]).unwrap());
    let first = tool.assigned("local", "ada", None).unwrap();
    let other = AssignedVariant {
        name: if first.name == "old" { "new" } else { "old" }.to_owned(),
        ..first.clone()
    };
    assert_eq!(
        tool.assigned("local", "ada", Some(&other)),
        Some(other.clone())
    );
    let gone = AssignedVariant {
        name: "gone".to_owned(),
        ..other
    };
    assert_eq!(
        tool.assigned("local", "ada", Some(&gone)),
        Some(first.clone())
    );
    assert_eq!(first.share_millionths, 500_000);
}

#[test]
fn invalid_splits_are_refused() {
    assert_eq!(split(&[("old", 1.0)]).unwrap_err(), SplitError::TooFew);
    let same = split(&[("old", 1.0), ("old", 1.0)]).unwrap_err();
    assert_eq!(same, SplitError::SameName("old".to_owned()));
    let none = split(&[("old", 0.0), ("new", 0.0)]).unwrap_err();
    assert_eq!(none, SplitError::NoWeight);
    let negative = split(&[("old", 1.0), ("new", -1.0)]).unwrap_err();
    assert_eq!(negative, SplitError::Weight("new".to_owned()));
}

#[test]
fn the_riskiest_http_method_is_used() {
    use HttpMethod::{Delete, Get, Post};
    assert_eq!(riskiest([Some(Get), Some(Get)].into_iter()), Some(Get));
    assert_eq!(
        riskiest([Some(Get), Some(Delete)].into_iter()),
        Some(Delete)
    );
    assert_eq!(riskiest([None, Some(Post)].into_iter()), Some(Post));
    assert_eq!(riskiest([None, Some(Get)].into_iter()), None);
}

fn library(variants: &str) -> Result<crate::ToolLibrary, String> {
    let text = format!(
        "name = \"shop\"\n[tools.search]\ndescription = \"Searches the shop\"\n\
         signature = \"(query: Text) --> IO Text\"\n{variants}"
    );
    crate::ToolLibrary::from_toml(&text, std::path::Path::new(".")).map_err(|errors| {
        let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
        messages.join("\n")
    })
}

#[test]
fn a_library_file_declares_variants() {
    let library = library(
        "experiment = \"ranking\"\n\
         [[tools.search.variants]]\nname = \"old\"\nweight = 3\ncommand = [\"old\"]\n\
         [[tools.search.variants]]\nname = \"new\"\ncommand = [\"new\"]\n",
    )
    .unwrap();
    let tool = library.lookup("search").unwrap();
    let split = tool.splits().unwrap();
    assert_eq!(split.experiment(), "ranking");
    let weights: Vec<(&str, f64)> = split
        .variants()
        .iter()
        .map(|variant| (variant.name.as_str(), variant.weight))
        .collect();
    assert_eq!(weights, [("old", 3.0), ("new", 1.0)]);
    assert_eq!(
        tool.implementation(),
        Some("ranking [old (weight 3): old; new (weight 1): new]")
    );
}

#[test]
fn errors_in_variants_are_reported_with_their_location() {
    let messages = library(
        "[[tools.search.variants]]\nname = \"old\"\nweight = -1\ncommand = [\"old\"]\n\
         [[tools.search.variants]]\nname = \"new\"\ncolour = \"red\"\n",
    )
    .unwrap_err();
    assert!(
        messages.contains("`tools.search.variants[0].weight` must be a number"),
        "{messages}"
    );
    assert!(
        messages.contains("`tools.search.variants[1].colour` is not a known key"),
        "{messages}"
    );
    assert!(
        messages.contains("`tools.search.variants[1]` has no implementation"),
        "{messages}"
    );
    let messages = library("experiment = \"x\"\ncommand = [\"a\"]\n").unwrap_err();
    assert!(messages.contains("is only for `variants`"), "{messages}");
    let one = "[[tools.search.variants]]\nname = \"old\"\ncommand = [\"old\"]\n";
    let messages = library(one).unwrap_err();
    assert!(messages.contains("at least two variants"), "{messages}");
    let messages = library(&one.repeat(2)).unwrap_err();
    assert!(
        messages.contains("there are two variants `old`"),
        "{messages}"
    );
    let messages = library(&format!("command = [\"a\"]\n{}", one.repeat(2))).unwrap_err();
    assert!(
        messages.contains("more than one implementation"),
        "{messages}"
    );
}

#[test]
fn every_variant_must_match_the_specification() {
    let other = Tool::builder("search")
        .description("Searches")
        .signature("(term: Text) --> IO Text")
        .handler(|_: Value| async move { Ok(json!("other")) })
        .build()
        .unwrap();
    let variant = |name: &str, tool: Tool| ToolVariant {
        name: text(name),
        weight: 1.0,
        tool,
    };
    let split = Split::new(
        text("ranking"),
        vec![variant("old", tool_returning("old")), variant("new", other)],
    );
    let library =
        crate::ToolLibrary::new("shop").with(tool_returning("outer").split(split.unwrap()));
    let specification = Arc::new(tool_returning("outer").specification().unwrap());
    let failure = library
        .bind_tool(&specification, crate::BindingMode::Exact)
        .unwrap_err();
    assert!(
        failure
            .to_string()
            .contains("variant `new`: schema differs"),
        "{failure}"
    );
}
