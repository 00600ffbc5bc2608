-- $1 worker, $2 cause. The process has certainly ended, or will write nothing more.
-- One that was taken for dead and came back has to be settled once more.
UPDATE workers
SET left_at = clock_timestamp(), left_cause = $2, leader = false,
  settled_at = CASE WHEN settled_at = heartbeat_at THEN settled_at END
WHERE id = $1 AND left_at IS NULL
