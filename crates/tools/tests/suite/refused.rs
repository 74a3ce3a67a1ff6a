//! What the macros refuse, and in which words. Each file in `refused` must not compile.

#[test]
fn functions_and_types_that_make_no_tool_are_refused_with_advice() {
    trybuild::TestCases::new().compile_fail("tests/suite/refused/*.rs");
}
