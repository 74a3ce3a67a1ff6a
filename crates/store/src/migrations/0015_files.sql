-- The files that agents were bound to, each as the latest run of a tenant used it.
CREATE TABLE IF NOT EXISTS used_files (
    tenant TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    run TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, path)
) STRICT, WITHOUT ROWID;

-- The files that tools of agents wrote and that no user has accepted since.
CREATE TABLE IF NOT EXISTS written_files (
    path TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    run TEXT NOT NULL,
    written_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS written_files_digest ON written_files (digest);
