-- What agents could not do for want of a tool, at each of the three moments it can show: before a run,
-- during it, and when an agent is loaded. A run counts once a moment, however often it is taken up.
CREATE TABLE tool_gaps (
    gap INTEGER PRIMARY KEY,
    run TEXT REFERENCES runs (run),
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    moment TEXT NOT NULL CHECK (moment IN ('before_run', 'during_run', 'at_load')),
    noticed_at INTEGER NOT NULL,
    -- The names of tools that would do what is missing. They stay when the words of the task are removed.
    wanted TEXT NOT NULL,
    -- The whole report, in the words of the task; removed with them.
    report TEXT,
    UNIQUE (run, moment),
    CHECK (run IS NOT NULL OR moment = 'at_load')
) STRICT;

CREATE INDEX tool_gaps_by_time ON tool_gaps (tenant, noticed_at);

CREATE TRIGGER tool_gaps_stay BEFORE DELETE ON tool_gaps
BEGIN SELECT RAISE(ABORT, 'gaps are kept'); END;

-- What a journal tells of a model that asked for tools the agent does not have: all there is of runs that
-- nothing else was kept of.
CREATE VIEW journal_gaps AS
SELECT
    run, tenant, principal, agent,
    json_group_array(DISTINCT tool) AS missing_tools,
    attempted_task,
    existing_tools_checked,
    min(at) AS noticed_at
FROM (
    SELECT
        started.run, started.tenant, started.principal,
        started.payload ->> '$.agent.name' AS agent,
        started.payload ->> '$.task.description' AS attempted_task,
        (
            SELECT json_group_array(name) FROM (
                SELECT value ->> '$.name' AS name FROM json_each(started.payload, '$.agent.tools')
                UNION ALL SELECT value FROM json_each(started.payload, '$.agent.agents')
            )
        ) AS existing_tools_checked,
        call.value ->> '$.tool' AS tool,
        asked.at
    FROM runs
    JOIN events AS started ON started.run = runs.run AND started.seq = 1
        AND started.kind = 'started'
    JOIN events AS asked ON asked.run = started.run AND asked.kind = 'model_answered'
    JOIN json_each(asked.payload, '$.answer.calls') AS call
    WHERE call.value ->> '$.tool' <> 'finish'
        AND NOT EXISTS (
            SELECT 1 FROM json_each(started.payload, '$.agent.tools') AS known
            WHERE known.value ->> '$.name' = call.value ->> '$.tool'
        )
        AND NOT EXISTS (
            SELECT 1 FROM json_each(started.payload, '$.agent.agents') AS known
            WHERE known.value = call.value ->> '$.tool'
        )
        -- What the gate let through, or stopped for another reason, was not missing.
        AND NOT EXISTS (
            SELECT 1 FROM events AS decided
            WHERE decided.run = started.run AND decided.kind = 'decided'
                AND decided.payload ->> '$.call'
                    = started.run || ':' || (asked.payload ->> '$.turn') || ':' || call.key
                AND decided.payload ->> '$.decision.stage' <> 'known_tool'
        )
)
GROUP BY run;

DROP VIEW IF EXISTS tool_gap_log;
CREATE VIEW tool_gap_log AS
SELECT
    gap, run, tenant, principal, agent, moment,
    coalesce(report -> '$.missing_tools', wanted) AS missing_tools,
    report ->> '$.attempted_task' AS attempted_task,
    report -> '$.existing_tools_checked' AS existing_tools_checked,
    report ->> '$.confidence' AS confidence,
    wanted,
    report,
    noticed_at
FROM tool_gaps
UNION ALL
SELECT
    NULL, run, tenant, principal, agent, 'during_run',
    missing_tools, attempted_task, existing_tools_checked,
    NULL,
    missing_tools,
    NULL,
    noticed_at
FROM journal_gaps
WHERE NOT EXISTS (
    SELECT 1 FROM tool_gaps WHERE tool_gaps.run = journal_gaps.run AND moment = 'during_run'
);
