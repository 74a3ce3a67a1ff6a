-- Which of several implementations of a tool ran, by which experiment, and how many of a million
-- principals were to get it. Kept with the execution, and so as long as that.
ALTER TABLE executions ADD COLUMN experiment TEXT;
ALTER TABLE executions ADD COLUMN variant TEXT;
ALTER TABLE executions ADD COLUMN share_millionths INTEGER;

CREATE INDEX executions_by_variant ON executions (tenant, tool, ended_at) WHERE variant IS NOT NULL;
