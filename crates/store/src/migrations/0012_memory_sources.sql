-- Where the text of a document came from. The same text may be in several files, and may have been told
-- without any; a document goes when it came from one place alone and that place now says something else.
CREATE TABLE memory_sources (
    scope INTEGER NOT NULL REFERENCES memory_scopes (id),
    -- Nothing for what was told without a source.
    source TEXT NOT NULL,
    document INTEGER NOT NULL REFERENCES memory_documents (number),
    -- What it is called there.
    title TEXT,
    PRIMARY KEY (scope, source, document)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_sources_by_document ON memory_sources (document);

INSERT INTO memory_sources (scope, source, document, title)
SELECT scope, coalesce(source, ''), number, title FROM memory_documents;

-- The source of a document itself is the one that is shown.
DROP INDEX memory_documents_by_source;
