-- MCP servers that were met. The revision counts the changes of their pins: 0 means that none were ever
-- written. Numbers are never given twice, so that a server that was forgotten and met again is another.
CREATE TABLE servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL CHECK (name <> ''),
    era TEXT CHECK (era IN ('legacy', 'modern')),
    -- How it is reached, without secrets; another one is another server.
    settings_digest TEXT NOT NULL CHECK (settings_digest <> ''),
    -- The files it runs, and how it introduced itself.
    program TEXT CHECK (json_valid(program)),
    greeting TEXT CHECK (json_valid(greeting)),
    first_seen INTEGER NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    UNIQUE (tenant, name)
) STRICT;

CREATE TRIGGER servers_keep_who_they_are BEFORE UPDATE ON servers
WHEN NEW.id <> OLD.id OR NEW.tenant <> OLD.tenant OR NEW.name <> OLD.name
    OR NEW.first_seen <> OLD.first_seen OR NEW.revision < OLD.revision
BEGIN SELECT RAISE(ABORT, 'a server stays who it is'); END;

-- What was accepted of a server's tools, and what it says of them now. The definitions are JSON, all of
-- it as the server sent it; their digests are checked whenever they are read.
CREATE TABLE pins (
    server INTEGER NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    accepted TEXT CHECK (json_valid(accepted)),
    accepted_digest TEXT CHECK (accepted_digest GLOB 'sha256:*'),
    -- Nobody if it was accepted when the server was first met.
    accepted_by TEXT CHECK (accepted_by <> ''),
    accepted_at INTEGER,
    offered TEXT CHECK (json_valid(offered)),
    offered_digest TEXT CHECK (offered_digest GLOB 'sha256:*'),
    findings TEXT NOT NULL CHECK (json_type(findings) = 'array'),
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (server, tool),
    CHECK ((accepted IS NULL) = (accepted_digest IS NULL)),
    CHECK ((accepted IS NULL) = (accepted_at IS NULL)),
    CHECK (accepted IS NOT NULL OR accepted_by IS NULL),
    CHECK ((offered IS NULL) = (offered_digest IS NULL)),
    CHECK (accepted IS NOT NULL OR offered IS NOT NULL)
) STRICT;
