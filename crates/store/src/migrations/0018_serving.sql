-- Access tokens of the API. A token itself is shown once and not stored, only its digest.
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Names, separated by spaces.
    scopes TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    revoked_by TEXT,
    mac BLOB
) STRICT;

CREATE TRIGGER IF NOT EXISTS tokens_stay BEFORE DELETE ON tokens
BEGIN SELECT RAISE(ABORT, 'tokens are revoked, not deleted'); END;

-- Requests that start a run and can be repeated: the key that the caller chose, and the run that it names.
CREATE TABLE IF NOT EXISTS request_keys (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    -- What was requested.
    digest BLOB NOT NULL,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS request_keys_by_time ON request_keys (at);

-- The ends of runs, numbered in their order, for those who follow all runs of a tenant. The journal of a run has no
-- event for its end.
CREATE TABLE IF NOT EXISTS run_ends (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    tenant TEXT NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS runs_end AFTER UPDATE OF state ON runs
WHEN NEW.state = 'ended' AND OLD.state <> 'ended'
BEGIN INSERT INTO run_ends (run, tenant) VALUES (NEW.run, NEW.tenant); END;
