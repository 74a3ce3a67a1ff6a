-- What models and tools used up, for those who count. It stays when the payloads of a run are purged.
CREATE TABLE IF NOT EXISTS usage (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    -- Without a run, an MCP server had the model asked.
    run TEXT,
    -- The call that cost something, if it was a tool.
    call TEXT,
    -- `answer` of a run's model, `tool` that states its cost, or what else a model was asked for.
    purpose TEXT NOT NULL CHECK (purpose IN ('answer', 'tool', 'gap', 'learning', 'sampling')),
    -- `Provider/id`, as far as it is known.
    model TEXT,
    at INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    -- NULL if the cost is unknown.
    microdollars INTEGER
) STRICT;

CREATE INDEX IF NOT EXISTS usage_by_time ON usage
    (tenant, at, agent, principal, input_tokens, output_tokens, microdollars);
CREATE INDEX IF NOT EXISTS usage_by_run ON usage (run);

-- What journals tell of earlier answers. Their models and costs were not recorded.
INSERT INTO usage
    (tenant, principal, agent, run, purpose, at, input_tokens, cached_tokens, cache_write_tokens, output_tokens,
     microdollars)
SELECT
    events.tenant, events.principal, runs.agent, events.run, 'answer', events.at,
    coalesce(payload ->> '$.answer.usage.input_tokens', 0), 0, 0,
    coalesce(payload ->> '$.answer.usage.output_tokens', 0),
    payload ->> '$.answer.usage.microdollars'
FROM events JOIN runs ON runs.run = events.run
WHERE events.kind = 'model_answered'
    AND (
        coalesce(payload ->> '$.answer.usage.input_tokens', 0) > 0
        OR coalesce(payload ->> '$.answer.usage.output_tokens', 0) > 0
    );
