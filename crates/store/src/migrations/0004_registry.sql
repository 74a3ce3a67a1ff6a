-- Every execution of a tool that has ended, for those who count. It stays when the journal is purged,
-- without the error.
CREATE TABLE executions (
    call TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (run),
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('success', 'error', 'timeout', 'cancelled', 'unknown')),
    category TEXT,
    error TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL
) STRICT;

CREATE INDEX executions_by_tool ON executions (tenant, tool, ended_at, state, category, started_at);
CREATE INDEX executions_by_end ON executions (tenant, ended_at);
CREATE INDEX executions_by_run ON executions (run);

INSERT INTO executions
SELECT
    call, run, tenant, principal, agent, tool_name,
    CASE
        WHEN status <> 'failed' THEN status
        WHEN error_category = 'cancelled' THEN 'cancelled'
        ELSE 'error'
    END,
    error_category, error, started_at, max(started_at, ended_at)
FROM tool_call_log
WHERE status IS NOT NULL AND tool_name IS NOT NULL
GROUP BY call;

CREATE TRIGGER executions_stay BEFORE DELETE ON executions
BEGIN SELECT RAISE(ABORT, 'executions are kept'); END;

-- What is kept of each rate limit: the moment up to which calls have used it up, and how long each of
-- them took to flow back.
CREATE TABLE rate_limits (
    tenant TEXT NOT NULL,
    limited TEXT NOT NULL,
    due INTEGER NOT NULL,
    flow INTEGER NOT NULL,
    PRIMARY KEY (tenant, limited)
) STRICT, WITHOUT ROWID;

-- What a task wants is told in its own words, and goes with it.
DROP TRIGGER decisions_stay;
CREATE TRIGGER decisions_stay BEFORE DELETE ON events
WHEN OLD.kind NOT IN
    ('started', 'offered', 'model_answered', 'model_failed', 'call_ended', 'time_passed')
BEGIN SELECT RAISE(ABORT, 'decisions are kept'); END;
