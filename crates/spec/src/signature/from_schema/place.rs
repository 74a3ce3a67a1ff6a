//! Where in a schema reading has got to. Places are chained on the stack and written out only when
//! something is said about them, so that going deeper costs nothing.

/// A place in a JSON document.
#[derive(Debug)]
pub(super) enum Place<'p> {
    /// The whole document.
    Root,
    /// The value under a key of another place.
    Key(&'p Place<'p>, &'p str),
    /// An item of the list at another place.
    Index(&'p Place<'p>, usize),
}

impl Place<'_> {
    /// The value under `key` here.
    pub(super) fn key<'p>(&'p self, key: &'p str) -> Place<'p> {
        Place::Key(self, key)
    }

    /// The item `index` of the list here.
    pub(super) fn index(&self, index: usize) -> Place<'_> {
        Place::Index(self, index)
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }

    /// The place as a JSON pointer.
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
