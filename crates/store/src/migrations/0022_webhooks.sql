-- Webhooks, as the configuration of a worker declares them, and what is to be sent to each.
CREATE TABLE IF NOT EXISTS webhooks (
    -- The file that declares it.
    declared_in TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The names of its events, each between spaces.
    events TEXT NOT NULL,
    -- How long before its expiry a question is announced, in microseconds.
    expiring INTEGER NOT NULL,
    -- When a worker last had it in its configuration.
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (declared_in, name)
) STRICT, WITHOUT ROWID;

-- One event for one webhook. It has no content: what is sent is made from what the event is about.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The id that the receiver sees, the same for every attempt.
    id TEXT NOT NULL UNIQUE,
    declared_in TEXT NOT NULL,
    webhook TEXT NOT NULL,
    event TEXT NOT NULL,
    tenant TEXT NOT NULL,
    run TEXT,
    call TEXT,
    -- The number of the question about the call, and of the decision about it.
    question INTEGER,
    decision INTEGER,
    gap INTEGER,
    at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0,
    -- The worker that sends it now, and until when it may.
    claimed_by TEXT,
    claimed_until INTEGER,
    attempted_at INTEGER,
    settled_at INTEGER,
    error TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS webhook_deliveries_due ON webhook_deliveries (declared_in, webhook, due_at, number)
    WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS webhook_deliveries_settled ON webhook_deliveries (state, settled_at)
    WHERE state <> 'pending';
CREATE UNIQUE INDEX IF NOT EXISTS webhook_deliveries_announced
    ON webhook_deliveries (declared_in, webhook, run, call, question) WHERE event = 'approval.expiring';

-- A row is added in the transaction of what it is about, so that no event is lost.
CREATE TRIGGER IF NOT EXISTS webhooks_asked AFTER INSERT ON approvals
WHEN EXISTS (SELECT 1 FROM webhooks)
BEGIN
    INSERT INTO webhook_deliveries (id, declared_in, webhook, event, tenant, run, call, question, at)
    SELECT 'msg_' || lower(hex(randomblob(16))), declared_in, name, 'approval.asked',
        NEW.tenant, NEW.run, NEW.call, NEW.number, NEW.asked_at
    FROM webhooks WHERE instr(events, ' approval.asked ') > 0;
END;

CREATE TRIGGER IF NOT EXISTS webhooks_decided AFTER UPDATE OF body ON approvals
WHEN CASE WHEN EXISTS (SELECT 1 FROM webhooks) AND json_valid(OLD.body) AND json_valid(NEW.body)
    THEN coalesce(json_array_length(NEW.body, '$.decisions'), 0)
        > coalesce(json_array_length(OLD.body, '$.decisions'), 0) END
BEGIN
    INSERT INTO webhook_deliveries (id, declared_in, webhook, event, tenant, run, call, question, decision, at)
    SELECT 'msg_' || lower(hex(randomblob(16))), declared_in, name, 'approval.decided',
        NEW.tenant, NEW.run, NEW.call, NEW.number, json_array_length(NEW.body, '$.decisions') - 1,
        coalesce(NEW.settled_at, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
    FROM webhooks WHERE instr(events, ' approval.decided ') > 0;
END;

CREATE TRIGGER IF NOT EXISTS webhooks_closed AFTER UPDATE OF status ON approvals
WHEN OLD.status = 'pending' AND NEW.status IN ('expired', 'cancelled') AND EXISTS (SELECT 1 FROM webhooks)
BEGIN
    INSERT INTO webhook_deliveries (id, declared_in, webhook, event, tenant, run, call, question, at)
    SELECT 'msg_' || lower(hex(randomblob(16))), declared_in, name, 'approval.closed',
        NEW.tenant, NEW.run, NEW.call, NEW.number, coalesce(NEW.settled_at, NEW.expires_at)
    FROM webhooks WHERE instr(events, ' approval.closed ') > 0;
END;

-- The run of a sub-agent or of a task of a plan is a part of another run, whose id its own begins with.
CREATE TRIGGER IF NOT EXISTS webhooks_ended AFTER UPDATE OF state ON runs
WHEN NEW.state = 'ended' AND OLD.state <> 'ended' AND EXISTS (SELECT 1 FROM webhooks)
    AND NOT EXISTS (
        SELECT 1 FROM runs AS outermost
        WHERE instr(NEW.run, '.') > 0 AND outermost.run = substr(NEW.run, 1, instr(NEW.run, '.') - 1)
    )
BEGIN
    INSERT INTO webhook_deliveries (id, declared_in, webhook, event, tenant, run, at)
    SELECT 'msg_' || lower(hex(randomblob(16))), declared_in, name, 'run.ended',
        NEW.tenant, NEW.run, coalesce(NEW.ended_at, NEW.started_at)
    FROM webhooks WHERE instr(events, ' run.ended ') > 0;
END;

CREATE TRIGGER IF NOT EXISTS webhooks_gap AFTER INSERT ON tool_gaps
WHEN EXISTS (SELECT 1 FROM webhooks)
BEGIN
    INSERT INTO webhook_deliveries (id, declared_in, webhook, event, tenant, run, gap, at)
    SELECT 'msg_' || lower(hex(randomblob(16))), declared_in, name, 'gap.recorded',
        NEW.tenant, NEW.run, NEW.gap, NEW.noticed_at
    FROM webhooks WHERE instr(events, ' gap.recorded ') > 0;
END;
