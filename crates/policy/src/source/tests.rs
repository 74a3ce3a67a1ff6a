use super::{marked_comments, place};

fn marked(text: &str) -> Vec<(String, String)> {
    let found = marked_comments(text).into_iter();
    found.map(|marked| (marked.word, marked.rest)).collect()
}

fn pair(word: &str, rest: &str) -> (String, String) {
    (word.to_owned(), rest.to_owned())
}

#[test]
fn places_count_lines_and_characters_from_one() {
    let text = "a\nöb\n";
    let at = |offset| {
        let place = place(text, offset);
        (place.line, place.column)
    };
    assert_eq!(at(0), (1, 1));
    assert_eq!(at(2), (2, 1));
    assert_eq!(at(4), (2, 2));
    assert_eq!(at(99), (3, 1));
    // Within a character, the character's place is meant.
    assert_eq!(at(3), (2, 1));
}

#[test]
fn a_marked_comment_goes_on_over_the_comment_lines_after_it() {
    let text = "// @match {\n//   1}\n// more\n\n// not this\npermit";
    assert_eq!(marked(text), [pair("match", "{\n1}\nmore")]);
}

#[test]
fn slashes_in_texts_begin_no_comment() {
    assert_eq!(
        marked("\"// @match 1\" \"\\\"// @match 2\" // @match 3"),
        [pair("match", "3")]
    );
    assert_eq!(marked("\"open // @match 1"), []);
}

#[test]
fn an_annotation_that_is_commented_out_is_no_mark() {
    assert_eq!(
        marked("// @id(\"a\")\n// @not_match(1)"),
        [pair("not_match", "(1)")]
    );
    assert_eq!(marked("// see ops@example.org"), []);
}
