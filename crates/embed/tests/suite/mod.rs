mod bm25;
mod compact_index;
mod embedding;
mod golden;
mod hybrid;
mod long_texts;
mod port;
mod vector_index;
