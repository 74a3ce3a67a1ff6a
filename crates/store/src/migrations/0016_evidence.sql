-- Rows that count have a MAC by the key of the installation, which is not in the database. Windlass computes the
-- MACs of what is here already when it first opens the database with the key.

-- With which key the rows are authenticated. The id of the journal is part of every MAC.
CREATE TABLE evidence (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    journal TEXT NOT NULL,
    key_id TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;

-- How many transactions were committed, which a file beside the database repeats, and how many runs there are.
CREATE TABLE log_position (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    number INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    mac BLOB NOT NULL
) STRICT;

-- The number and the MAC of the last event. Without `head` the events have no MACs: the run ended before there were any.
ALTER TABLE runs ADD COLUMN last_event INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN head BLOB;
-- How many events were there before there were MACs.
ALTER TABLE runs ADD COLUMN unsigned_events INTEGER;
-- How many rows of each kind belong to the run.
ALTER TABLE runs ADD COLUMN questions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN held_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN commands INTEGER NOT NULL DEFAULT 0;
-- Why the last events of the run may be missing.
ALTER TABLE runs ADD COLUMN damage TEXT;
ALTER TABLE runs ADD COLUMN mac BLOB;

-- The digest of the payload, and a MAC that covers the MAC of the event before.
ALTER TABLE events ADD COLUMN digest BLOB;
ALTER TABLE events ADD COLUMN mac BLOB;

-- What a purge keeps of an event.
CREATE TABLE purged_events (
    run TEXT NOT NULL REFERENCES runs (run),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    digest BLOB NOT NULL,
    mac BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER purged_events_stay BEFORE DELETE ON purged_events
BEGIN SELECT RAISE(ABORT, 'what a purge keeps is kept'); END;

ALTER TABLE approvals ADD COLUMN mac BLOB;
ALTER TABLE holds ADD COLUMN mac BLOB;
ALTER TABLE mailbox ADD COLUMN digest BLOB;
ALTER TABLE mailbox ADD COLUMN mac BLOB;
ALTER TABLE standing_approvals ADD COLUMN mac BLOB;

-- All commands of a run are checked when it is resumed.
CREATE INDEX mailbox_by_run ON mailbox (run);

-- A settled row still gets the MAC that it has not had.
DROP TRIGGER approvals_are_settled_once;
CREATE TRIGGER approvals_are_settled_once BEFORE UPDATE OF
    run, call, number, tenant, principal, kind, tool, status, asked_at, expires_at, settled_at, body ON approvals
WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a settled approval does not change'); END;

DROP TRIGGER holds_end_once;
CREATE TRIGGER holds_end_once BEFORE UPDATE OF
    run, call, tenant, principal, tool, status, held_at, due_at, body ON holds
WHEN OLD.status IN ('started', 'undone', 'cancelled')
BEGIN SELECT RAISE(ABORT, 'a hold that is over does not change'); END;

-- What administrators changed, as one chain of a tenant: each MAC covers the one before.
CREATE TABLE admin_changes (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    changed_by TEXT,
    at INTEGER NOT NULL,
    -- JSON: what was changed, with digests.
    body TEXT NOT NULL,
    mac BLOB,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER admin_changes_stay BEFORE DELETE ON admin_changes
BEGIN SELECT RAISE(ABORT, 'changes by administrators are kept'); END;
CREATE TRIGGER admin_changes_do_not_change BEFORE UPDATE OF tenant, seq, kind, changed_by, at, body ON admin_changes
BEGIN SELECT RAISE(ABORT, 'changes by administrators do not change'); END;

-- The end of each chain, so that a shorter one is noticed.
CREATE TABLE admin_heads (
    tenant TEXT NOT NULL PRIMARY KEY,
    last INTEGER NOT NULL,
    head BLOB,
    mac BLOB
) STRICT, WITHOUT ROWID;
