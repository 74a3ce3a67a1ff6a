-- What was recalled for a run quotes other runs, and is removed with what else a run said.
DROP TRIGGER decisions_stay;
CREATE TRIGGER decisions_stay BEFORE DELETE ON events
WHEN OLD.kind NOT IN
    ('started', 'offered', 'recalled', 'model_answered', 'model_failed', 'call_ended', 'planned', 'replanned', 'task_ended',
     'task_marked', 'time_passed')
BEGIN SELECT RAISE(ABORT, 'decisions are kept'); END;
