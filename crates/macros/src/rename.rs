//! The case rules of serde's `rename_all`. They must give the same names as serde, because the schema
//! describes what serde reads and writes. Word boundaries follow serde too.

/// A case that `rename_all` can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    pub(crate) const NAMES: [(&'static str, Self); 8] = [
        ("lowercase", Self::Lower),
        ("UPPERCASE", Self::Upper),
        ("PascalCase", Self::Pascal),
        ("camelCase", Self::Camel),
        ("snake_case", Self::Snake),
        ("SCREAMING_SNAKE_CASE", Self::ScreamingSnake),
        ("kebab-case", Self::Kebab),
        ("SCREAMING-KEBAB-CASE", Self::ScreamingKebab),
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, case)| (known == name).then_some(case))
    }

    /// The JSON name of a field, which Rust writes in snake case.
    pub(crate) fn rename_field(self, field: &str) -> String {
        match self {
            // Serde does not change fields for lower case.
            Self::Lower | Self::Snake => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(field),
            Self::Camel => with_lower_start(&pascal(field)),
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// The JSON name of a variant, which Rust writes in Pascal case.
    pub(crate) fn rename_variant(self, variant: &str) -> String {
        match self {
            Self::Lower => variant.to_ascii_lowercase(),
            Self::Upper => variant.to_ascii_uppercase(),
            Self::Pascal => variant.to_owned(),
            Self::Camel => with_lower_start(variant),
            Self::Snake => snake(variant),
            Self::ScreamingSnake => snake(variant).to_ascii_uppercase(),
            Self::Kebab => snake(variant).replace('_', "-"),
            Self::ScreamingKebab => snake(variant).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(snake: &str) -> String {
    snake
        .split('_')
        .flat_map(|word| {
            let mut rest = word.chars();
            rest.next()
                .map(|first| first.to_ascii_uppercase())
                .into_iter()
                .chain(rest)
        })
        .collect()
}

fn with_lower_start(name: &str) -> String {
    let mut rest = name.chars();
    rest.next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(rest)
        .collect()
}

fn snake(pascal: &str) -> String {
    let mut snake = String::with_capacity(pascal.len() + 4);
    for (index, character) in pascal.char_indices() {
        if index > 0 && character.is_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn fields_are_renamed_as_serde_does() {
        let renamed = Case::NAMES.map(|(_, case)| case.rename_field("max_results_2"));
        assert_eq!(
            renamed,
            [
                "max_results_2",
                "MAX_RESULTS_2",
                "MaxResults2",
                "maxResults2",
                "max_results_2",
                "MAX_RESULTS_2",
                "max-results-2",
                "MAX-RESULTS-2",
            ]
        );
    }

    #[test]
    fn variants_are_renamed_as_serde_does() {
        let renamed = Case::NAMES.map(|(_, case)| case.rename_variant("VeryTasty"));
        assert_eq!(
            renamed,
            [
                "verytasty",
                "VERYTASTY",
                "VeryTasty",
                "veryTasty",
                "very_tasty",
                "VERY_TASTY",
                "very-tasty",
                "VERY-TASTY",
            ]
        );
    }

    #[test]
    fn an_unknown_case_is_rejected() {
        assert_eq!(Case::from_name("camelcase"), None);
    }
}
