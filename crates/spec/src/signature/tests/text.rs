//! The meaning of valid text forms.

use serde_json::json;

use crate::signature::{Field, Signature, Type};

fn signature(text: &str) -> Signature {
    Signature::parse(text).unwrap_or_else(|diagnostics| panic!("{text}: {diagnostics:#?}"))
}

fn parameter(text: &str) -> Field {
    signature(&format!("({text}) --> IO Text")).parameters()[0].clone()
}

#[test]
fn a_signature_has_parameters_and_a_return_type() {
    let read = signature(
        "(name: Text, age: Maybe Int, tags: [Text], address: {street: Text, zip: Text}) --> IO Text",
    );
    let address = vec![
        Field::required("street", Type::Text),
        Field::required("zip", Type::Text),
    ];
    let parameters = vec![
        Field::required("name", Type::Text),
        Field::optional("age", Type::Integer),
        Field::required("tags", Type::list(Type::Text)),
        Field::required("address", Type::Record(address)),
    ];
    assert_eq!(read, Signature::new(parameters, Type::Text).unwrap());
}

#[test]
fn every_scalar_has_its_names() {
    for (names, ty) in [
        (vec!["Text", "String"], Type::Text),
        (vec!["Int", "Integer"], Type::Integer),
        (vec!["Double", "Number", "Float"], Type::Number),
        (vec!["Bool", "Boolean"], Type::Boolean),
        (vec!["Object"], Type::Object),
        (vec!["Array", "[Any]"], Type::Array),
        (vec!["Any"], Type::Any),
    ] {
        for name in names {
            assert_eq!(Type::parse(name), Ok((ty.clone(), false)), "{name}");
        }
    }
}

#[test]
fn io_parentheses_and_trailing_commas_are_optional() {
    let plain = signature("(a: Text, b: {c: Int}) --> IO Text");
    for text in [
        "(a: Text, b: {c: Int}) --> Text",
        "(a: Text, b: {c: Int,},) --> IO (Text)",
        "(a:Text,b:{c:Int})-->IO((Text))",
        "\n( a : ( Text )\n, b : { c : Int }\n)\n-->\nIO\nText\n",
        "(`a`: Text, \"b\": {'c': Int}) --> IO Text",
    ] {
        assert_eq!(signature(text), plain, "{text}");
    }
    assert_eq!(
        signature("() --> IO {}"),
        Signature::new(vec![], Type::Record(vec![])).unwrap()
    );
}

#[test]
fn maybe_makes_a_field_optional_and_other_types_nullable() {
    assert_eq!(
        parameter("a: Maybe Int"),
        Field::optional("a", Type::Integer)
    );
    assert_eq!(parameter("a: Int?"), Field::optional("a", Type::Integer));
    assert_eq!(
        parameter("a: (Maybe Int)"),
        Field::optional("a", Type::Integer)
    );
    let nullable = Type::nullable(Type::Integer);
    assert_eq!(parameter("a: [Int?]").ty, Type::list(nullable.clone()));
    assert_eq!(
        parameter("a: Maybe [Maybe Int]").ty,
        Type::list(nullable.clone())
    );
    assert_eq!(signature("() --> IO (Maybe Int)").returns(), &nullable);
    assert_eq!(signature("() --> Maybe Int").returns(), &nullable);
    assert_eq!(
        Type::parse("Maybe [Text]"),
        Ok((Type::list(Type::Text), true))
    );
}

#[test]
fn fields_have_defaults_and_descriptions() {
    assert_eq!(
        parameter("a: Int = -3"),
        Field::with_default("a", Type::Integer, -3)
    );
    assert_eq!(
        parameter("a: Maybe Int = 3"),
        Field::with_default("a", Type::Integer, 3)
    );
    assert_eq!(
        parameter("a: Text = 'it\\'s' \"what it is\""),
        Field::with_default("a", Type::Text, "it's").described("what it is")
    );
    assert_eq!(
        parameter("a: Object = {\"x\": [1.5e3, null, true], 'y': {}} 'd'"),
        Field::with_default(
            "a",
            Type::Object,
            json!({"x": [1500.0, null, true], "y": {}})
        )
        .described("d")
    );
    assert_eq!(
        parameter("a: [Maybe Int] = [1, null]"),
        Field::with_default(
            "a",
            Type::list(Type::nullable(Type::Integer)),
            json!([1, null])
        )
    );
}

#[test]
fn an_enum_is_string_literals_followed_by_a_description() {
    assert_eq!(
        parameter("unit: \"celsius\" | 'fahrenheit' \"of the result\""),
        Field::required("unit", Type::options(["celsius", "fahrenheit"]))
            .described("of the result")
    );
    assert_eq!(
        parameter("unit: \"a\" \"the only one\""),
        Field::required("unit", Type::options(["a"])).described("the only one")
    );
    assert_eq!(
        parameter("unit: \"a\" | \"b\"?"),
        Field::optional("unit", Type::options(["a", "b"]))
    );
    assert_eq!(
        parameter("unit: [\"a\" | \"b\"]").ty,
        Type::list(Type::options(["a", "b"]))
    );
}

#[test]
fn quoted_names_may_be_any_text_and_keywords_may_be_bare_names() {
    assert_eq!(parameter("IO: Text").name, "IO");
    assert_eq!(parameter("Maybe: Text").name, "Maybe");
    assert_eq!(parameter("x-1.y_z: Text").name, "x-1.y_z");
    assert_eq!(parameter("`größe in \"cm\"`: Text").name, "größe in \"cm\"");
    assert_eq!(
        parameter("\"a\\u00e9\\ud83d\\ude00\\n\": Text").name,
        "aé😀\n"
    );
}

#[test]
fn the_printed_form_is_canonical() {
    let printed = |text| signature(text).to_string();
    assert_eq!(
        printed(
            "(a:String,b:Int?,c:[Float?],d:{e:Boolean=true 'x'},`f g`:\"p\"|\"q\",)-->Maybe Text"
        ),
        "(a: Text, b: Maybe Int, c: [Maybe Double], d: {e: Bool = true \"x\"}, \
         \"f g\": \"p\" | \"q\") --> IO (Maybe Text)"
    );
    assert_eq!(printed("()-->{}"), "() --> IO {}");
}

#[test]
fn numbers_keep_every_digit() {
    for number in [
        "0",
        "-1",
        "18446744073709551615",
        "0.1",
        "-0.0",
        "1e+300",
        "5e-324",
        "1.0",
    ] {
        let field = parameter(&format!("a: Double = {number}"));
        assert_eq!(field.to_string(), format!("a: Double = {number}"));
    }
}
