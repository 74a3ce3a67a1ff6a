-- What is remembered. Every memory is of one scope: an agent's, a person's or program's, or a run's, always
-- within a tenant and for a principal. Scopes are numbered, and nothing but the number ties rows to them, so
-- a query that names its scopes sees no others.
CREATE TABLE memory_scopes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    principal TEXT NOT NULL CHECK (principal <> ''),
    kind TEXT NOT NULL CHECK (kind IN ('agent', 'principal', 'run')),
    -- The agent's name or the run's id; nothing for a principal.
    value TEXT NOT NULL CHECK ((value = '') = (kind = 'principal')),
    -- How many chunks there are, and how many words in them.
    chunks INTEGER NOT NULL DEFAULT 0 CHECK (chunks >= 0),
    words INTEGER NOT NULL DEFAULT 0 CHECK (words >= 0),
    -- Counts the changes, for those who keep an index of it in memory.
    change INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, principal, kind, value)
) STRICT;

CREATE TRIGGER memory_scopes_keep_whose_they_are BEFORE UPDATE ON memory_scopes
WHEN NEW.id <> OLD.id OR NEW.tenant <> OLD.tenant OR NEW.principal <> OLD.principal
    OR NEW.kind <> OLD.kind OR NEW.value <> OLD.value
BEGIN SELECT RAISE(ABORT, 'a scope stays whose it is'); END;

-- A document is known by what is in it: the same text in the same scope is the same document.
CREATE TABLE memory_documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE CHECK (id GLOB 'doc-*'),
    scope INTEGER NOT NULL REFERENCES memory_scopes (id),
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    -- Where it came from, such as a path or the run that stored it, and what it is called.
    source TEXT,
    title TEXT,
    digest TEXT NOT NULL CHECK (digest GLOB 'sha256:*'),
    bytes INTEGER NOT NULL CHECK (bytes > 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Whether it was stored by a run that had read from outside.
    tainted INTEGER NOT NULL CHECK (tainted IN (0, 1)),
    metadata TEXT NOT NULL CHECK (json_type(metadata) = 'object'),
    UNIQUE (scope, digest)
) STRICT;

CREATE INDEX memory_documents_by_source ON memory_documents (scope, source);
CREATE INDEX memory_documents_by_time ON memory_documents (scope, updated_at);

-- Numbers are never given twice and only grow, so whoever knows the last one knows what is new.
CREATE TABLE memory_chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES memory_documents (number),
    place INTEGER NOT NULL,
    -- The byte of the document at which it begins; the end of one chunk is said again in the next.
    begins INTEGER NOT NULL,
    words INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, place)
) STRICT;

-- In one byte a component, scope by scope, to be read in one go.
CREATE TABLE memory_vectors (
    scope INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    compact BLOB NOT NULL,
    PRIMARY KEY (scope, chunk)
) STRICT, WITHOUT ROWID;

-- In full precision, read for the few that a search compares.
CREATE TABLE memory_exact_vectors (
    chunk INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    exact BLOB NOT NULL
) STRICT;

-- The words of chunks as searches compare them, and the scope as one more word.
CREATE VIRTUAL TABLE memory_words USING fts5(scope, words, tokenize = 'unicode61 remove_diacritics 0');
-- What is removed is taken out at once, not when segments are next merged.
INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);

-- What was removed, for those who keep an index in memory.
CREATE TABLE memory_removed (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    chunk INTEGER NOT NULL
) STRICT;

-- Which embedder made the vectors. The generation counts the embedders; while one takes over from
-- another, the vectors are not whole.
CREATE TABLE memory_settings (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    embedder TEXT NOT NULL CHECK (embedder <> ''),
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 32),
    dimension INTEGER NOT NULL CHECK (dimension > 0),
    generation INTEGER NOT NULL DEFAULT 1,
    is_whole INTEGER NOT NULL DEFAULT 1 CHECK (is_whole IN (0, 1)),
    -- What was removed up to this number is no longer listed.
    removed_before INTEGER NOT NULL DEFAULT 0
) STRICT;
