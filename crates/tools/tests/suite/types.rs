//! Tests of the JSON types of Rust types. The derive must agree with serde, so names are compared with
//! those that serde writes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_spec::{Field, Type};
use windlass_tools::{Nesting, ToolType, TypeTooDeep, tool};

fn type_of<T: ToolType>() -> Type {
    T::tool_type(Nesting::TOP).unwrap()
}

#[test]
fn plain_types_have_their_json_types() {
    assert_eq!(type_of::<String>(), Type::Text);
    assert_eq!(type_of::<bool>(), Type::Boolean);
    assert_eq!(
        [type_of::<i8>(), type_of::<i64>(), type_of::<u32>()],
        [const { Type::Integer }; 3]
    );
    assert_eq!(
        [type_of::<f32>(), type_of::<f64>()],
        [const { Type::Number }; 2]
    );
    assert_eq!(type_of::<Map<String, Value>>(), Type::Object);
    assert_eq!(
        type_of::<Vec<Vec<bool>>>(),
        Type::list(Type::list(Type::Boolean))
    );
}

#[test]
fn an_option_is_nullable_as_an_item_and_optional_as_a_field() {
    assert_eq!(
        type_of::<Vec<Option<i32>>>(),
        Type::list(Type::nullable(Type::Integer))
    );
    assert_eq!(
        <Option<Box<String>>>::field("nickname", Nesting::TOP),
        Ok(Field::optional("nickname", Type::Text))
    );
    assert_eq!(
        <Box<Option<i32>>>::field("age", Nesting::TOP),
        Ok(Field::optional("age", Type::Integer))
    );
}

#[derive(Serialize, Deserialize, ToolType)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Person {
    /// What people call them,
    /// in full
    full_name: String,
    #[serde(rename = "years")]
    age: Option<u8>,
    #[serde(default, alias = "labels")]
    known_tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<Colour>,
}

#[derive(Serialize, Deserialize, ToolType)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Colour {
    DarkRed,
    #[serde(rename = "blue")]
    Blue,
}

#[test]
fn a_struct_is_a_record_and_an_enum_is_a_choice() {
    assert_eq!(
        type_of::<Person>(),
        Type::Record(vec![
            Field::required("fullName", Type::Text).described("What people call them, in full"),
            Field::optional("years", Type::Integer),
            Field::optional("knownTags", Type::list(Type::Text)),
            Field::optional("type", Type::options(["DARK_RED", "blue"])),
        ])
    );
}

#[test]
fn the_names_are_those_that_serde_writes() {
    let person = json!({"fullName": "Ada", "years": 36, "knownTags": [], "type": "DARK_RED"});
    let read: Person = serde_json::from_value(person.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), person);
    let Type::Record(fields) = type_of::<Person>() else {
        panic!("not a record")
    };
    let described: BTreeSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let written: BTreeSet<&str> = person
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(described, written);
}

macro_rules! renamed {
    ($($module:ident $case:literal;)+) => {$(
        mod $module {
            #[derive(serde::Serialize, windlass_tools::ToolType)]
            #[serde(rename_all = $case)]
            pub(super) struct Fields {
                pub(super) max_results_2: bool,
                pub(super) plain: bool,
            }

            #[derive(serde::Serialize, windlass_tools::ToolType)]
            #[serde(rename_all = $case)]
            pub(super) enum Variants {
                VeryTasty,
                HTTPCall2,
            }
        }
    )+

    #[test]
    fn every_case_is_the_one_serde_writes() {
        $(
            let written = serde_json::to_value($module::Fields { max_results_2: true, plain: true });
            let Type::Record(fields) = type_of::<$module::Fields>() else { panic!("not a record") };
            let described: Value = fields.into_iter().map(|field| (field.name, json!(true))).collect();
            assert_eq!(described, written.unwrap());

            let written = [$module::Variants::VeryTasty, $module::Variants::HTTPCall2]
                .map(|variant| serde_json::to_value(variant).unwrap().as_str().unwrap().to_owned());
            assert_eq!(type_of::<$module::Variants>(), Type::options(written));
        )+
    }};
}

renamed! {
    lower "lowercase";
    upper "UPPERCASE";
    pascal "PascalCase";
    camel "camelCase";
    snake "snake_case";
    screaming_snake "SCREAMING_SNAKE_CASE";
    kebab "kebab-case";
    screaming_kebab "SCREAMING-KEBAB-CASE";
}

#[derive(Serialize, Deserialize, ToolType)]
#[serde(default)]
struct Settings {
    depth: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self { depth: 3 }
    }
}

#[test]
fn a_struct_with_defaults_has_only_optional_fields() {
    assert_eq!(
        type_of::<Settings>(),
        Type::Record(vec![Field::optional("depth", Type::Integer)])
    );
    assert_eq!(
        serde_json::from_value::<Settings>(json!({})).unwrap().depth,
        3
    );
}

#[derive(Serialize, Deserialize, ToolType)]
struct Tree {
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
    children: Vec<Tree>,
}

#[test]
fn a_recursive_type_is_an_error() {
    /// Counts the leaves
    #[tool]
    fn count(tree: Tree) -> usize {
        tree.children.len()
    }
    assert_eq!(
        Tree::tool_type(Nesting::TOP),
        Err(TypeTooDeep { name: "Tree" })
    );
    assert_eq!(
        count_tool().unwrap_err().to_string(),
        "the tool `count` cannot be built\n  the type `Tree` nests deeper than 32 levels; \
         if it is recursive, use `serde_json::Map` for the inner part"
    );
    assert_eq!(
        count(Tree {
            left: None,
            right: None,
            children: Vec::new()
        }),
        0
    );
}
