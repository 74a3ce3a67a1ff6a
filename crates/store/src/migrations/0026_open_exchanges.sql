-- JSON array: the runs whose answers are not final, each with the place of its messages.
ALTER TABLE conversations ADD COLUMN open TEXT NOT NULL DEFAULT '[]';

CREATE INDEX conversations_open ON conversations (conversation) WHERE open <> '[]';
