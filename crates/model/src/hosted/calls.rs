//! Assembles the calls of one answer from their pieces. `genai` can do this too, but it allocates as many
//! calls as the server's numbering claims, fills gaps with copies and joins calls with the same number.
//! Here every call needs a name.

use serde_json::{Map, Value};
use windlass_core::model::RequestedArguments;

/// The calls of an answer so far.
#[derive(Default)]
pub(super) struct Calls(Vec<PartialCall>);

/// The part of a call that has arrived.
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
    extent: Extent,
}

/// The call that a piece belongs to, as far as it is known.
pub(super) struct CallUpdate<'a> {
    pub(super) position: usize,
    pub(super) name: &'a str,
    pub(super) length: usize,
}

impl Calls {
    /// Appends to the arguments of a call. The first piece of a call has its name, and usually its id;
    /// `genai` gives the other pieces an id made from their number.
    pub(super) fn append(&mut self, id: &str, name: &str, arguments: &str) -> CallUpdate<'_> {
        let position = self
            .continued_call(id, name)
            .unwrap_or_else(|| self.begin(id, name));
        let call = &mut self.0[position];
        if call.name.is_empty() {
            call.name = name.to_owned();
        }
        call.arguments.push_str(arguments);
        call.extent.read(arguments);
        self.update(position)
    }

    /// Replaces the arguments of a call by all that have arrived so far.
    pub(super) fn replace(&mut self, id: &str, name: &str, arguments: &str) -> CallUpdate<'_> {
        let known = self.0.iter().position(|call| call.id == id);
        let position = known.unwrap_or_else(|| self.begin(id, name));
        self.0[position].arguments = arguments.to_owned();
        self.update(position)
    }

    /// Adds a complete call. Its id may be that of another.
    pub(super) fn add(&mut self, name: &str, arguments: &Value) -> CallUpdate<'_> {
        let position = self.begin("", name);
        if !arguments.is_null() {
            self.0[position].arguments = arguments.to_string();
        }
        self.update(position)
    }

    /// The names and arguments, in order. Arguments that are not JSON stay text.
    pub(super) fn finish(self) -> impl Iterator<Item = (String, RequestedArguments)> {
        self.0.into_iter().map(|call| {
            let arguments = match serde_json::from_str(&call.arguments) {
                Ok(value) => RequestedArguments::Json(value),
                Err(_) if call.arguments.trim().is_empty() => {
                    RequestedArguments::Json(Value::Object(Map::new()))
                }
                Err(_) => RequestedArguments::Text(call.arguments),
            };
            (call.name, arguments)
        })
    }

    /// The call that a piece continues. A call with complete arguments is not continued: then the server
    /// has given two calls the same number or id.
    fn continued_call(&self, id: &str, name: &str) -> Option<usize> {
        let is_open = |call: &PartialCall| !call.extent.is_complete;
        let fits = |call: &PartialCall| {
            let is_named_alike = name.is_empty() || call.name.is_empty() || call.name == name;
            call.id == id && is_named_alike && is_open(call)
        };
        let same = self.0.iter().rposition(fits);
        if same.is_some() || !name.is_empty() {
            return same;
        }
        let numbered = id
            .strip_prefix("call_")
            .and_then(|number| number.parse().ok());
        numbered
            .filter(|number| self.0.get(*number).is_some_and(is_open))
            .or_else(|| self.0.len().checked_sub(1))
    }

    fn begin(&mut self, id: &str, name: &str) -> usize {
        self.0.push(PartialCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            extent: Extent::default(),
        });
        self.0.len() - 1
    }

    fn update(&self, position: usize) -> CallUpdate<'_> {
        let call = &self.0[position];
        CallUpdate {
            position,
            name: &call.name,
            length: call.arguments.len(),
        }
    }
}

/// Follows the brackets of JSON as it arrives, to find the end of its first value.
#[derive(Default)]
struct Extent {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Extent {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}
