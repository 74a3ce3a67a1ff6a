#![allow(unused)]

use windlass_tools::tool;

#[tool]
fn undescribed(name: String) -> String {
    name
}

/// Takes what it does not own
#[tool]
fn borrowing(text: &str, words: &[String], count: &u8) -> String {
    text.to_owned()
}

/// Takes anything
#[tool]
fn generic<T>(value: T) -> String {
    String::new()
}

/// Takes something apart
#[tool(name = "")]
fn pattern((left, right): (u8, u8), #[default] count: u8) -> u8 {
    left
}

/// Says nothing
#[tool]
fn silent() {}

/// Is misspelt
#[tool(nam = "silent")]
fn misspelt() -> String {
    String::new()
}

struct Greeter;

impl Greeter {
    /// Greets
    #[tool]
    fn greet(&self, name: String) -> String {
        name
    }
}

/// Is no function
#[tool]
struct Nothing;

fn main() {}
