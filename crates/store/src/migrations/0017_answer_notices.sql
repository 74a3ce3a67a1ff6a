-- What tools should write differently in their answers, counted by tool and rule.
CREATE TABLE IF NOT EXISTS answer_notices (
    tenant TEXT NOT NULL,
    tool TEXT NOT NULL,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, tool, code)
) STRICT, WITHOUT ROWID;
