-- The duration of a call is that of its last start, as in `executions`: without the time a person took to decide.
DROP VIEW tool_call_log;

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
        -- The last start: a call that waited for an approval while it ran starts again.
        (
            SELECT max(started.at) FROM events AS started
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
