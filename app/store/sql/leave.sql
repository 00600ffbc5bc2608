-- $1 worker, $2 cause. The process has certainly ended, or will write nothing more.
-- One that was taken for dead and came back has to be settled once more.
-- -> how many leases are in its name; no row when it had left before
UPDATE workers
SET left_at = clock_timestamp(), left_cause = $2, leader = false,
  settled_at = CASE WHEN settled_at = heartbeat_at THEN settled_at END
WHERE id = $1 AND left_at IS NULL
RETURNING (SELECT count(*) FROM leases WHERE worker_id = $1) AS held
