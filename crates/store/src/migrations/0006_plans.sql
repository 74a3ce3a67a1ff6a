-- What others want of the plans of a run: the mailbox with two more kinds of mail, which have a body.
DROP TRIGGER mail_stays;
DROP INDEX mailbox_waiting;
ALTER TABLE mailbox RENAME TO mailbox_before;

CREATE TABLE mailbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL REFERENCES runs (run),
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('settled', 'undo', 'release', 'cancel', 'mark', 'replan')),
    -- The call, or the plan, which is named after a call.
    call TEXT,
    -- Which question about the call is settled.
    number INTEGER,
    -- What is wanted of a plan, as JSON.
    body TEXT,
    -- Who sent it; nobody if time did.
    sent_by TEXT,
    sent_at INTEGER NOT NULL,
    taken_at INTEGER,
    -- The event of the run that was stored with the taking.
    taken_seq INTEGER,
    FOREIGN KEY (run, call, number) REFERENCES approvals (run, call, number),
    CHECK ((call IS NULL) = (kind = 'cancel')),
    CHECK ((number IS NULL) = (kind <> 'settled')),
    CHECK ((body IS NULL) = (kind NOT IN ('mark', 'replan'))),
    CHECK ((taken_at IS NULL) = (taken_seq IS NULL))
) STRICT;

INSERT INTO mailbox (id, run, tenant, principal, kind, call, number, sent_by, sent_at, taken_at, taken_seq)
SELECT id, run, tenant, principal, kind, call, number, sent_by, sent_at, taken_at, taken_seq
FROM mailbox_before;
DROP TABLE mailbox_before;

CREATE INDEX mailbox_waiting ON mailbox (run, id) WHERE taken_at IS NULL;
CREATE TRIGGER mail_stays BEFORE DELETE ON mailbox
BEGIN SELECT RAISE(ABORT, 'mail is kept'); END;

-- Every plan that was made, with the run and the call that made it.
CREATE VIEW plans AS
SELECT
    planned.payload ->> '$.call' AS plan,
    planned.run, runs.tenant, runs.principal,
    planned.payload ->> '$.plan.goal' AS goal,
    json_array_length(planned.payload, '$.plan.tasks') AS tasks,
    planned.at AS made_at,
    runs.state AS run_state
FROM events AS planned JOIN runs ON runs.run = planned.run
WHERE planned.kind = 'planned';
