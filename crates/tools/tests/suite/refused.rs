//! Tests of the compile errors of the macros. The files in `refused` must not compile.

#[test]
fn invalid_functions_and_types_are_refused_with_advice() {
    trybuild::TestCases::new().compile_fail("tests/suite/refused/*.rs");
}
