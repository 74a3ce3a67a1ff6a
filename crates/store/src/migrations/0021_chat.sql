-- The requests of chat clients, which send the whole conversation each time: the digest of its messages, and the run
-- that answers the last one.
CREATE TABLE IF NOT EXISTS chat_turns (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    digest BLOB NOT NULL,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    -- Whether the message continues a run that waited for a person, rather than starting one.
    continues INTEGER NOT NULL,
    -- What the client was answered: that the run waits, or its end.
    outcome TEXT CHECK (outcome IN ('waiting', 'ended')),
    -- The usage of the run so far, when it was answered.
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, principal, agent, digest, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS chat_turns_by_run ON chat_turns (run);
CREATE INDEX IF NOT EXISTS chat_turns_by_time ON chat_turns (at);
