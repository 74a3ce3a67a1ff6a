use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::read;

#[test]
fn a_page_becomes_its_title_and_its_text() {
    let page = read(
        "<!DOCTYPE html><html><head><title>Rivers &amp;\n lakes</title><style>p{}</style>\
         <script>if (a</b) { '</p>' }</script></head><body><h1>Rivers</h1>\
         <p>The <b>Seine</b> is\n 777&nbsp;km long.</p><ul><li>Marne<li>Oise</ul>\
         <table><tr><th>name<th>km</tr><tr><td>Seine</td><td>777</td></tr></table>\
         <!-- hidden <p>never</p> --><pre>a\n  b</pre>after<br>break</body></html>",
    );
    assert_eq!(page.title, "Rivers & lakes");
    assert_eq!(
        page.text,
        "# Rivers\n\nThe Seine is 777 km long.\n\n- Marne\n- Oise\n\nname | km\nSeine | 777\n\n\
         a\n  b\n\nafter\nbreak"
    );
}

#[test]
fn links_are_kept_except_nofollow_links() {
    let page = read(
        "<base href='/docs/'><a href=one.html>1</a><A HREF=\"two?a=1&amp;b=2\">2</A>\
         <a rel='external NoFollow' href=three>3</a><a name=x>4</a>",
    );
    assert_eq!(page.links, ["one.html", "two?a=1&b=2"]);
    assert_eq!(page.base.as_deref(), Some("/docs/"));
    let page = read("<head><meta name=robots content='noindex, nofollow'></head><a href=x>x</a>");
    assert!(page.links.is_empty());
}

#[test]
fn scripts_and_styles_are_never_text() {
    for html in [
        "<SCRIPT>evil</SCRIPT>good",
        "<script src=x>evil</script >good",
        "<style>evil</style>good<script>evil",
        "<template><p>evil</p></template>good",
        "good<!--evil",
        "good<svg><text>evil</text></svg>",
    ] {
        assert_eq!(read(html).text, "good", "{html}");
    }
}

#[test]
fn broken_markup_is_read_as_far_as_it_goes() {
    assert_eq!(read("a < b <3 & c").text, "a < b <3 & c");
    assert_eq!(read("before<a href=\"never closed").text, "before");
    assert_eq!(read("<p").text, "");
    assert_eq!(read("</").text, "</");
    assert_eq!(read("<a href='é'ü=ö>x</a>").text, "x");
}

#[test]
fn reading_takes_linear_time() {
    for piece in [
        "<", "<a ", "</", "<!--", "<script>", "<p x='", "&#", "<title>", "<head>", "<li>",
    ] {
        let html = piece.repeat(2_000_000 / piece.len());
        let begun = Instant::now();
        read(&html);
        assert!(begun.elapsed() < Duration::from_secs(5), "{piece}");
    }
}

proptest! {
    #[test]
    fn reading_never_fails(html in "[<>/!a-zé=\"'&;# \\-\n]{0,200}") {
        read(&html);
    }
}
