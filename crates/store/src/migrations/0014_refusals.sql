-- Why a worker did not resume a run. It holds for the owner count it was written at: a run that has been
-- taken over since is not refused any more.
CREATE TABLE IF NOT EXISTS refusals (
    run TEXT PRIMARY KEY REFERENCES runs (run),
    epoch INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
