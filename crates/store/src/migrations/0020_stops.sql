-- What is stopped, in one row: all stops that have not ended. The revision counts how often something was stopped or
-- started, so that a missing row, or an older one in its place, does not agree with the record of changes by administrators.
CREATE TABLE IF NOT EXISTS stops (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    revision INTEGER NOT NULL,
    body TEXT NOT NULL,
    mac BLOB
) STRICT;

CREATE INDEX IF NOT EXISTS admin_changes_of_stops ON admin_changes (kind) WHERE kind IN ('stopped', 'started');

-- When a run that waits for the program that makes its call is looked at again.
ALTER TABLE runs ADD COLUMN wake_at INTEGER;

CREATE INDEX IF NOT EXISTS runs_to_wake ON runs (wake_at) WHERE state = 'waiting' AND wake_at IS NOT NULL;
