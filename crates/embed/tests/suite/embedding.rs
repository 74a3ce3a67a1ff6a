//! An embedding has unit length or is zero, is never NaN, and survives storage.

use proptest::prelude::*;
use windlass_embed::{
    Embedder as _, EmbedderHash, Embedding, NotFinite, StaticEmbedder, StoredEmbeddingError,
};

fn length(embedding: &Embedding) -> f64 {
    let squares = embedding
        .as_slice()
        .iter()
        .map(|&value| f64::from(value).powi(2));
    squares.sum::<f64>().sqrt()
}

#[test]
fn text_without_a_known_word_is_similar_to_nothing() {
    let embedder = StaticEmbedder::new();
    let zero = embedder.embed("\u{0}\u{1b} \t");
    assert!(zero.is_zero());
    assert_eq!(zero, Embedding::zero(embedder.dimension()));
    assert_eq!(zero.cosine(&zero), 0.0);
    assert_eq!(zero.cosine(&embedder.embed("hello")), 0.0);
}

#[test]
fn paraphrase_is_more_similar_than_another_subject() {
    let [task, same, other] = [
        "delete a file from the disk",
        "remove documents from storage",
        "what will the weather be tomorrow",
    ]
    .map(|text| StaticEmbedder::new().embed(text));
    assert!(task.cosine(&same) > task.cosine(&other) + 0.2);
}

#[test]
fn only_finite_components_make_an_embedding() {
    assert_eq!(
        Embedding::new(vec![1.0, f32::NAN]),
        Err(NotFinite { index: 1 })
    );
    assert_eq!(
        Embedding::new(vec![f32::NEG_INFINITY]),
        Err(NotFinite { index: 0 })
    );
    let largest = Embedding::new(vec![f32::MAX; 4]).unwrap();
    assert_eq!(largest.as_slice(), [0.5; 4]);
    let least = Embedding::new(vec![f32::from_bits(1); 4]).unwrap();
    assert_eq!(least.as_slice(), [0.5; 4]);
}

#[test]
fn embeddings_of_different_dimensions_are_not_similar() {
    let [short, long] = [2, 3].map(|size| Embedding::new(vec![1.0; size]).unwrap());
    assert_eq!(short.cosine(&long), 0.0);
}

#[test]
fn stored_vector_of_another_embedder_is_refused() {
    let embedder = StaticEmbedder::new();
    let stored = embedder
        .embed("a strategy")
        .to_bytes(&EmbedderHash::of(&[b"another"]));
    let error = Embedding::from_bytes(&stored, embedder.fingerprint()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the vector was made by embedder {}, not {}; embed the text again",
            EmbedderHash::of(&[b"another"]),
            embedder.fingerprint()
        )
    );
}

#[test]
fn damaged_stored_vector_is_refused() {
    let embedder = StaticEmbedder::new();
    let hash = embedder.fingerprint();
    let stored = embedder.embed("a strategy").to_bytes(hash);
    let refused = |bytes: &[u8]| match Embedding::from_bytes(bytes, hash) {
        Err(StoredEmbeddingError::Damaged { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&stored[..15]), "too short for a fingerprint");
    let whole = "its length is not a whole number of components";
    assert_eq!(refused(&stored[..stored.len() - 1]), whole);
    let unit = "it is neither of unit length nor zero";
    assert_eq!(refused(&stored[..stored.len() / 2]), unit);
    let mut not_a_number = stored;
    not_a_number[16..20].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(refused(&not_a_number), unit);
}

#[test]
fn fingerprint_is_written_and_read_as_hexadecimal() {
    let hash = EmbedderHash::of(&[b"model", b"256"]);
    assert_eq!(hash.to_string().parse(), Ok(hash));
    let json = serde_json::to_string(&hash).unwrap();
    assert_eq!(json, format!("\"{hash}\""));
    assert_eq!(serde_json::from_str::<EmbedderHash>(&json).unwrap(), hash);
    for wrong in [
        "",
        "12",
        &"g".repeat(32),
        &format!("+{}", "0".repeat(31)),
        &"é".repeat(16),
    ] {
        assert!(wrong.parse::<EmbedderHash>().is_err(), "{wrong:?}");
    }
    assert_ne!(
        hash,
        EmbedderHash::of(&[b"model2", b"56"]),
        "parts do not run together"
    );
}

proptest! {
    #[test]
    fn every_text_has_an_embedding_of_unit_length_or_zero(text in any::<String>()) {
        let embedding = StaticEmbedder::new().embed(&text);
        prop_assert!(embedding.as_slice().iter().all(|value| value.is_finite()));
        prop_assert!(embedding.is_zero() || (length(&embedding) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn words_in_any_script_make_no_nan(text in "[a-zA-Z0-9 .\u{300}-\u{36f}가-힣一-龥\u{1f300}-\u{1f6ff}\u{0}-\u{1f}]{0,200}") {
        let embedder = StaticEmbedder::new();
        let embedding = embedder.embed(&text);
        let cosine = embedding.cosine(&embedder.embed("the quick brown fox"));
        prop_assert!((-1.0..=1.0).contains(&cosine));
        let with_itself = embedding.cosine(&embedding);
        prop_assert!(embedding.is_zero() || (with_itself - 1.0).abs() < 1e-5);
    }

    #[test]
    fn finite_components_give_unit_length_or_zero(values in prop::collection::vec(
        any::<f32>().prop_filter("finite", |value| value.is_finite()), 0..40,
    )) {
        let zero = values.iter().all(|&value| value == 0.0);
        let embedding = Embedding::new(values).unwrap();
        prop_assert_eq!(embedding.is_zero(), zero);
        prop_assert!(zero || (length(&embedding) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn embedding_survives_storage_bit_by_bit(text in any::<String>()) {
        let embedder = StaticEmbedder::new();
        let embedding = embedder.embed(&text);
        let stored = embedding.to_bytes(embedder.fingerprint());
        prop_assert_eq!(Embedding::from_bytes(&stored, embedder.fingerprint()), Ok(embedding));
    }

    #[test]
    fn reading_arbitrary_bytes_never_makes_an_invalid_embedding(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut stored = StaticEmbedder::new().fingerprint().as_bytes().to_vec();
        stored.extend(bytes);
        if let Ok(embedding) = Embedding::from_bytes(&stored, StaticEmbedder::new().fingerprint()) {
            prop_assert!(embedding.is_zero() || (length(&embedding) - 1.0).abs() < 1e-3);
        }
    }
}
