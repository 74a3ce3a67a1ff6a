-- Times are microseconds since 1970 in UTC. Every row says for which tenant and principal it is.

CREATE TABLE runs (
    run TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    task_id TEXT,
    -- The beginning of the task, for lists; all of it is in the first event. Gone after a purge.
    task TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    "end" TEXT,
    -- `waiting` is an end that may be taken back: the run goes on when a person has answered.
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'waiting', 'ended')),
    -- Counts the owners. An append with an older one is refused.
    epoch INTEGER NOT NULL DEFAULT 1,
    purged_at INTEGER,
    purged_events INTEGER,
    purged_bytes INTEGER,
    CHECK (("end" IS NULL) = (state = 'open')),
    CHECK (("end" IS NULL) = (ended_at IS NULL))
) STRICT;

CREATE INDEX runs_by_start ON runs (started_at, run);
CREATE INDEX runs_to_purge ON runs (ended_at) WHERE state = 'ended' AND purged_at IS NULL;

-- With a rowid on purpose: payloads may be large, and a large row makes a clustered index slow.
CREATE TABLE events (
    run TEXT NOT NULL REFERENCES runs (run),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    payload TEXT NOT NULL,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

CREATE TABLE conversations (
    conversation TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    -- JSON arrays: the ids of the runs in order, and what was said.
    runs TEXT NOT NULL,
    messages TEXT NOT NULL
) STRICT;

CREATE INDEX conversations_by_update ON conversations (updated_at, conversation);
