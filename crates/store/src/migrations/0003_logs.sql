-- The journal told as tables, for people with a SQL prompt. Nothing is stored twice: each is a view,
-- and what a journal does not say, or no longer says after a purge, is NULL. Only what SQLite 3.38
-- knows is used, so that an older `sqlite3` program can read them.

-- Every call the gate decided about. A call has one event `decided` or more; the first one is the row.
CREATE VIEW tool_call_log AS
SELECT
    run, call, turn, tenant, principal, agent,
    coalesce(request ->> '$.tool', approval_tool, hold_tool) AS tool_name,
    -- A person may have let the call run with other arguments.
    coalesce(
        edited,
        CASE
            WHEN json_type(request, '$.arguments.json') = 'null' THEN '{}'
            WHEN json_valid(coalesce(request ->> '$.arguments.json', request ->> '$.arguments.text'))
            THEN json(coalesce(request ->> '$.arguments.json', request ->> '$.arguments.text'))
        END,
        approval_arguments,
        hold_arguments
    ) AS parameters,
    ending -> '$.success' AS result,
    max(0, ended_at - started_at) / 1000 AS duration_ms,
    -- Calls that never ran have none.
    CASE
        WHEN started_at IS NULL OR ending IS NULL THEN NULL
        WHEN json_type(ending, '$.success') IS NOT NULL THEN 'success'
        WHEN json_type(ending, '$.timeout') IS NOT NULL THEN 'timeout'
        ELSE 'failed'
    END AS status,
    failure ->> '$.category' AS error_category,
    failure ->> '$.operator_message' AS error,
    max(0.0, min(1.0, request ->> '$.confidence')) AS confidence,
    verdict, approval, hold,
    coalesce(
        (SELECT group_concat(value ->> '$.by', ', ') FROM json_each(decisions)),
        hold_decided_by
    ) AS decided_by,
    requested_at, started_at, ended_at
FROM (
    SELECT
        decided.run, decided.call, turn, decided.tenant, decided.principal, runs.agent,
        -- The model asked for the call in the last answer before the gate decided about it.
        asked.payload -> ('$.answer.calls[' || position || ']') AS request,
        asked.at AS requested_at,
        (
            SELECT later.payload ->> '$.decision.verdict' FROM events AS later
            WHERE later.run = decided.run AND later.kind = 'decided'
                AND later.payload ->> '$.call' = decided.call
            ORDER BY later.seq DESC LIMIT 1
        ) AS verdict,
        (
            SELECT min(started.at) FROM events AS started
            WHERE started.run = decided.run AND started.kind = 'call_started'
                AND started.payload ->> '$.call' = decided.call
        ) AS started_at,
        ended.at AS ended_at,
        ended.payload -> '$.end' AS ending,
        coalesce(
            ended.payload -> '$.end.error',
            ended.payload -> '$.end.timeout',
            ended.payload -> '$.end.cancelled',
            ended.payload -> '$.end.unknown'
        ) AS failure,
        approvals.status AS approval,
        approvals.tool AS approval_tool,
        approvals.body -> '$.question.tool_args' AS approval_arguments,
        approvals.body -> '$.decisions' AS decisions,
        CASE WHEN approvals.status = 'approved' THEN (
            SELECT value -> '$.arguments' FROM json_each(approvals.body, '$.decisions')
            WHERE value ->> '$.decision' = 'approve_edited' ORDER BY key DESC LIMIT 1
        ) END AS edited,
        holds.status AS hold,
        holds.tool AS hold_tool,
        holds.body -> '$.tool_args' AS hold_arguments,
        holds.body ->> '$.decided.by' AS hold_decided_by
    FROM (
        -- An id is `run:turn:position`, and the id of a run may hold colons itself.
        SELECT
            run, seq, tenant, principal,
            payload ->> '$.call' AS call,
            CAST(substr(payload ->> '$.call', length(run) + 2) AS INTEGER) AS turn,
            CAST(
                substr(
                    payload ->> '$.call',
                    length(run) + 2 + instr(substr(payload ->> '$.call', length(run) + 2), ':')
                ) AS INTEGER
            ) AS position
        FROM events WHERE kind = 'decided'
    ) AS decided
    JOIN runs ON runs.run = decided.run
    LEFT JOIN events AS asked ON asked.run = decided.run
        AND asked.seq = (
            SELECT max(answer.seq) FROM events AS answer
            WHERE answer.run = decided.run AND answer.seq < decided.seq
                AND answer.kind = 'model_answered'
        )
        AND asked.payload ->> '$.turn' = turn
    LEFT JOIN events AS ended ON ended.run = decided.run AND ended.kind = 'call_ended'
        AND ended.payload ->> '$.call' = decided.call
    LEFT JOIN approvals ON approvals.run = decided.run AND approvals.call = decided.call
        AND approvals.number = (
            SELECT max(latest.number) FROM approvals AS latest
            WHERE latest.run = decided.run AND latest.call = decided.call
        )
    LEFT JOIN holds ON holds.run = decided.run AND holds.call = decided.call
    WHERE NOT EXISTS (
        SELECT 1 FROM events AS earlier
        WHERE earlier.run = decided.run AND earlier.seq < decided.seq AND earlier.kind = 'decided'
            AND earlier.payload ->> '$.call' = decided.call
    )
);

-- Every run with its answer, once it is completed.
CREATE VIEW agent_executions AS
SELECT
    run, tenant, principal, agent, task_id, task, state, run_end, started_at, ended_at,
    coalesce(
        trim(finish ->> '$.answer', char(9, 10, 13, 32)),
        nullif(trim(answer ->> '$.text', char(9, 10, 13, 32)), '')
    ) AS answer,
    nullif(trim(finish ->> '$.reasoning', char(9, 10, 13, 32)), '') AS reasoning,
    (
        SELECT json_group_array(json_object(
            'tool_name', tool_name,
            'parameters', json(parameters),
            'result', json(result),
            'duration_ms', duration_ms,
            'status', status
        ))
        FROM (
            SELECT tool_name, parameters, result, duration_ms, status
            FROM tool_call_log AS made
            WHERE made.run = ended.run AND made.status IS NOT NULL
            ORDER BY made.turn, length(made.call), made.call
        )
    ) AS tool_calls,
    -- Half, if the model did not say.
    CASE
        WHEN json_type(finish, '$.confidence') IN ('integer', 'real')
            OR json_valid(finish ->> '$.confidence')
                AND json_type(finish ->> '$.confidence') IN ('integer', 'real')
        THEN max(0.0, min(1.0, CAST(finish ->> '$.confidence' AS REAL)))
        WHEN answer IS NOT NULL THEN 0.5
    END AS confidence,
    purged_at
FROM (
    SELECT
        runs.run, runs.tenant, runs.principal, runs.agent, runs.task_id, runs.state,
        runs.started_at, runs.ended_at, runs.purged_at,
        coalesce(started.payload ->> '$.task.description', runs.task) AS task,
        runs."end" ->> '$.end' AS run_end,
        last.payload -> '$.answer' AS answer,
        (
            SELECT json(coalesce(
                value ->> '$.arguments.json', value ->> '$.arguments.text'
            ))
            FROM json_each(last.payload, '$.answer.calls')
            WHERE value ->> '$.tool' = 'finish'
                AND json_valid(coalesce(
                    value ->> '$.arguments.json', value ->> '$.arguments.text'
                ))
            ORDER BY key LIMIT 1
        ) AS finish
    FROM runs
    LEFT JOIN events AS started ON started.run = runs.run AND started.seq = 1
        AND started.kind = 'started'
    -- A run is completed by the last thing the model said.
    LEFT JOIN events AS last ON last.run = runs.run
        AND runs."end" ->> '$.end' = 'completed'
        AND last.seq = (
            SELECT max(answer.seq) FROM events AS answer
            WHERE answer.run = runs.run AND answer.kind = 'model_answered'
        )
) AS ended;

-- Every run in which the model asked for a tool that the agent does not have.
CREATE VIEW tool_gap_log AS
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

-- What was decided, and what may have been done, is never removed, whoever tries.
CREATE TRIGGER decisions_stay BEFORE DELETE ON events
WHEN OLD.kind NOT IN ('started', 'model_answered', 'model_failed', 'call_ended', 'time_passed')
BEGIN SELECT RAISE(ABORT, 'decisions are kept'); END;

CREATE TRIGGER mail_stays BEFORE DELETE ON mailbox
BEGIN SELECT RAISE(ABORT, 'mail is kept'); END;

CREATE TRIGGER standing_approvals_stay BEFORE DELETE ON standing_approvals
BEGIN SELECT RAISE(ABORT, 'standing approvals are kept'); END;

-- How many events a run has that gets no more for now, so that lists need not count them.
ALTER TABLE runs ADD COLUMN event_count INTEGER;
UPDATE runs SET event_count = (SELECT count(*) FROM events WHERE events.run = runs.run)
WHERE state <> 'open';

-- Lists of what waits for people, however much else there is. The second holds all a list shows.
CREATE INDEX runs_waiting ON runs (started_at, run) WHERE state = 'waiting';
CREATE INDEX approvals_pending ON approvals
    (asked_at, run, call, number, tenant, principal, kind, tool, expires_at)
    WHERE status = 'pending';
