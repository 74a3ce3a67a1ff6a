//! Search by words and embeddings together.

use windlass_embed::{
    Embedder as _, Embedding, HybridIndex, HybridParameters, StaticEmbedder, tool_text,
    tool_text_with_parameters,
};

fn index(texts: &[String]) -> HybridIndex {
    let embedder = StaticEmbedder::new();
    let entries = texts.iter().map(|text| (text, embedder.embed(text)));
    HybridIndex::build(HybridParameters::default(), embedder.dimension(), entries).unwrap()
}

fn first(index: &HybridIndex, query: &str) -> Option<usize> {
    let hits = index
        .search(query, &StaticEmbedder::new().embed(query), 3)
        .unwrap();
    hits.first().map(|hit| hit.id)
}

#[test]
fn words_decide_between_similar_embeddings_and_embeddings_without_shared_words() {
    let index = index(&[
        tool_text("tickets.close", "Close the ticket with code ZX81."),
        tool_text("tickets.closeAll", "Close the ticket with code QL77."),
        tool_text("fs.removeFile", "Remove a file from the disk."),
    ]);
    assert_eq!(first(&index, "close the ticket QL77"), Some(1));
    assert_eq!(first(&index, "erase documents"), Some(2));
}

#[test]
fn score_is_the_weighted_sum_of_its_parts() {
    let texts = ["send a mail", "read a mail", "weather in a city"].map(str::to_owned);
    let index = index(&texts);
    let query = StaticEmbedder::new().embed("send mail");
    let hits = index.search("send mail", &query, 3).unwrap();
    assert_eq!(hits[0].id, 0);
    for hit in &hits {
        assert_eq!(hit.score, hit.cosine + 0.03 * hit.bm25);
        assert_eq!(
            hit.cosine,
            StaticEmbedder::new().embed(&texts[hit.id]).cosine(&query)
        );
    }
    assert!(hits.is_sorted_by(|left, right| left.score >= right.score));
}

#[test]
fn words_find_texts_without_an_embedding() {
    let entries = [("alpha", Embedding::zero(4)), ("beta", Embedding::zero(4))];
    let index = HybridIndex::build(HybridParameters::default(), 4, entries).unwrap();
    let hits = index.search("beta", &Embedding::zero(4), 5).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [1]);
}

#[test]
fn text_that_shares_nothing_is_not_found() {
    let index = index(&["send a mail".to_owned()]);
    assert_eq!(first(&index, "\u{0}"), None);
}

#[test]
fn tool_text_with_parameters_includes_names_and_descriptions() {
    let text = tool_text_with_parameters("getArea", "Area.", [("sideLength", "In metres.")]);
    assert_eq!(text, "get Area. Area. side Length: In metres.");
}
