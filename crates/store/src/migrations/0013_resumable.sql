-- Runs that are open, so that those whose process died are found without reading all that have ended.
CREATE INDEX IF NOT EXISTS runs_open ON runs (run) WHERE state = 'open';
