-- Questions to people, undo windows, and what others want of a run. The bodies are JSON; the columns
-- beside them say the same again, for lists and for the rules below.

CREATE TABLE approvals (
    run TEXT NOT NULL REFERENCES runs (run),
    call TEXT NOT NULL,
    -- A call may lead to more than one question: whether it may run, then one of the tool itself.
    number INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('authorize', 'ask', 'intervene')),
    tool TEXT,
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    settled_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (run, call, number),
    CHECK (expires_at > asked_at),
    CHECK ((settled_at IS NULL) = (status = 'pending'))
) STRICT;

CREATE UNIQUE INDEX approvals_one_pending ON approvals (run, call) WHERE status = 'pending';
CREATE INDEX approvals_to_expire ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_by_time ON approvals (asked_at, run, call, number);

CREATE TRIGGER approvals_are_settled_once BEFORE UPDATE ON approvals
WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a settled approval does not change'); END;

CREATE TRIGGER approvals_stay BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are kept'); END;

CREATE TABLE holds (
    run TEXT NOT NULL REFERENCES runs (run),
    call TEXT NOT NULL,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('held', 'released', 'started', 'undone', 'cancelled')),
    held_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, call)
) STRICT;

CREATE INDEX holds_open ON holds (due_at) WHERE status IN ('held', 'released');
CREATE INDEX holds_by_time ON holds (held_at, run, call);

CREATE TRIGGER holds_end_once BEFORE UPDATE ON holds
WHEN OLD.status IN ('started', 'undone', 'cancelled')
BEGIN SELECT RAISE(ABORT, 'a hold that is over does not change'); END;

CREATE TRIGGER holds_stay BEFORE DELETE ON holds
BEGIN SELECT RAISE(ABORT, 'holds are kept'); END;

-- What others want of the owner of a run. Each mail is taken once, with the event that says so.
CREATE TABLE mailbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL REFERENCES runs (run),
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('settled', 'undo', 'release', 'cancel')),
    call TEXT,
    -- Which question about the call is settled.
    number INTEGER,
    -- Who sent it; nobody if time did.
    sent_by TEXT,
    sent_at INTEGER NOT NULL,
    taken_at INTEGER,
    -- The event of the run that was stored with the taking.
    taken_seq INTEGER,
    FOREIGN KEY (run, call, number) REFERENCES approvals (run, call, number),
    CHECK ((call IS NULL) = (kind = 'cancel')),
    CHECK ((number IS NULL) = (kind <> 'settled')),
    CHECK ((taken_at IS NULL) = (taken_seq IS NULL))
) STRICT;

CREATE INDEX mailbox_waiting ON mailbox (run, id) WHERE taken_at IS NULL;

CREATE TABLE standing_approvals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    revoked_at INTEGER,
    body TEXT NOT NULL
) STRICT;

CREATE INDEX standing_approvals_in_force ON standing_approvals (tenant, principal, tool)
    WHERE revoked_at IS NULL;
