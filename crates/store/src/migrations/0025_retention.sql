-- Runs that nothing is removed of, with who decided that and why. A lifted hold stays.
CREATE TABLE IF NOT EXISTS legal_holds (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- The outermost run: the hold covers the runs that work for it too.
    run TEXT NOT NULL,
    reason TEXT NOT NULL,
    placed_by TEXT NOT NULL,
    placed_at INTEGER NOT NULL,
    lifted_by TEXT,
    lifted_at INTEGER,
    lift_reason TEXT,
    mac BLOB,
    CHECK ((lifted_by IS NULL) = (lifted_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS legal_holds_in_force ON legal_holds (run) WHERE lifted_at IS NULL;

CREATE TRIGGER IF NOT EXISTS legal_holds_stay BEFORE DELETE ON legal_holds
BEGIN SELECT RAISE(ABORT, 'legal holds are lifted, not deleted'); END;

-- Runs whose payloads are being removed, which takes several transactions.
CREATE TABLE IF NOT EXISTS purging (
    run TEXT PRIMARY KEY REFERENCES runs (run)
) STRICT, WITHOUT ROWID;

-- The runs whose records the present transaction removes. Empty outside of it.
CREATE TABLE IF NOT EXISTS removing (
    run TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS runs_to_remove ON runs (ended_at) WHERE state = 'ended' AND purged_at IS NOT NULL;

-- What is kept is kept until the record of its run is removed as a whole.
DROP TRIGGER approvals_stay;
CREATE TRIGGER approvals_stay BEFORE DELETE ON approvals
WHEN NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'approvals are kept'); END;

DROP TRIGGER holds_stay;
CREATE TRIGGER holds_stay BEFORE DELETE ON holds
WHEN NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'holds are kept'); END;

DROP TRIGGER mail_stays;
CREATE TRIGGER mail_stays BEFORE DELETE ON mailbox
WHEN NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'mail is kept'); END;

DROP TRIGGER executions_stay;
CREATE TRIGGER executions_stay BEFORE DELETE ON executions
WHEN NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'executions are kept'); END;

DROP TRIGGER tool_gaps_stay;
CREATE TRIGGER tool_gaps_stay BEFORE DELETE ON tool_gaps
WHEN NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'gaps are kept'); END;

DROP TRIGGER purged_events_stay;
CREATE TRIGGER purged_events_stay BEFORE DELETE ON purged_events
WHEN NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'what a purge keeps is kept'); END;

DROP TRIGGER decisions_stay;
CREATE TRIGGER decisions_stay BEFORE DELETE ON events
WHEN OLD.kind NOT IN
    ('started', 'offered', 'recalled', 'model_answered', 'model_failed', 'call_ended', 'planned', 'replanned', 'task_ended',
     'task_marked', 'time_passed')
    AND NOT EXISTS (SELECT 1 FROM removing WHERE removing.run = OLD.run)
BEGIN SELECT RAISE(ABORT, 'decisions are kept'); END;
