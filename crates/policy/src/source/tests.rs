use super::{example_comments, place};

fn examples(text: &str) -> Vec<(String, String)> {
    let found = example_comments(text).into_iter();
    found.map(|comment| (comment.word, comment.rest)).collect()
}

fn pair(word: &str, rest: &str) -> (String, String) {
    (word.to_owned(), rest.to_owned())
}

#[test]
fn positions_count_lines_and_characters_from_one() {
    let text = "a\nöb\n";
    let at = |offset| {
        let place = place(text, offset);
        (place.line, place.column)
    };
    assert_eq!(at(0), (1, 1));
    assert_eq!(at(2), (2, 1));
    assert_eq!(at(4), (2, 2));
    assert_eq!(at(99), (3, 1));
    // An offset within a character has the position of the character.
    assert_eq!(at(3), (2, 1));
}

#[test]
fn example_comment_continues_on_following_comment_lines() {
    let text = "// @match {\n//   1}\n// more\n\n// not this\npermit";
    assert_eq!(examples(text), [pair("match", "{\n1}\nmore")]);
}

#[test]
fn slashes_in_strings_do_not_start_a_comment() {
    assert_eq!(
        examples("\"// @match 1\" \"\\\"// @match 2\" // @match 3"),
        [pair("match", "3")]
    );
    assert_eq!(examples("\"open // @match 1"), []);
}

#[test]
fn commented_out_annotation_is_not_an_example() {
    assert_eq!(
        examples("// @id(\"a\")\n// @not_match(1)"),
        [pair("not_match", "(1)")]
    );
    assert_eq!(examples("// see ops@example.org"), []);
}
