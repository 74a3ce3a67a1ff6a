-- The words of chunks, each with the number of its scope before it: which chunks of a scope have a word is
-- one list, however much other scopes hold, and however long the list of all chunks of the scope would be.
-- A word of other characters than a to z and digits stands as its bytes, so that the tokeniser takes each
-- for one token whatever it knows of Unicode.
CREATE VIRTUAL TABLE memory_terms USING fts5(terms, tokenize = 'ascii');
-- What is removed is taken out at once, not when segments are next merged.
INSERT INTO memory_terms (memory_terms, rank) VALUES ('secure-delete', 1);
-- How often each chunk has a word.
CREATE VIRTUAL TABLE memory_term_uses USING fts5vocab(memory_terms, instance);

INSERT INTO memory_terms (rowid, terms)
SELECT w.rowid, CASE w.words WHEN '' THEN '' ELSE (
    SELECT group_concat(d.scope || CASE
        WHEN value GLOB '*[^a-z0-9]*' THEN 'u' || lower(hex(value))
        ELSE 'x' || value
    END, ' ')
    FROM json_each('["' || replace(w.words, ' ', '","') || '"]')
) END
FROM memory_words w
JOIN memory_chunks c ON c.id = w.rowid
JOIN memory_documents d ON d.number = c.document
ORDER BY w.rowid;

DROP TABLE memory_words;

-- How many words chunks have, without reading their texts.
CREATE INDEX memory_chunks_by_length ON memory_chunks (id, words);
