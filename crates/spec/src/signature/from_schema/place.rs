//! The current path in a schema. Paths are linked on the stack and converted to pointers only for
//! messages, so that descending costs nothing.

/// A path in a JSON document.
#[derive(Debug)]
pub(super) enum SchemaPath<'p> {
    /// The whole document.
    Root,
    /// The value under a key of the parent.
    Key(&'p SchemaPath<'p>, &'p str),
    /// An item of the list at the parent.
    Index(&'p SchemaPath<'p>, usize),
}

impl SchemaPath<'_> {
    /// The value under `key` here.
    pub(super) fn key<'p>(&'p self, key: &'p str) -> SchemaPath<'p> {
        SchemaPath::Key(self, key)
    }

    /// The item `index` of the list here.
    pub(super) fn index(&self, index: usize) -> SchemaPath<'_> {
        SchemaPath::Index(self, index)
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }

    /// The path as a JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut place = self;
        loop {
            place = match place {
                Self::Root => break,
                Self::Key(parent, key) => {
                    steps.push(key.replace('~', "~0").replace('/', "~1"));
                    parent
                }
                Self::Index(parent, index) => {
                    steps.push(index.to_string());
                    parent
                }
            };
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            pointer.push('/');
            pointer.push_str(step);
        }
        pointer
    }
}
