-- $1 me, $2 broker_ok, $3 draining, $4 leader -> one row at least: known, and every lease in my name.
-- The answer is the truth about what I hold.
WITH me AS (
  UPDATE workers
  SET heartbeat_at = clock_timestamp(), broker_ok = $2, draining = $3, leader = $4
  WHERE id = $1 AND left_at IS NULL
  RETURNING id
)
SELECT EXISTS (SELECT FROM me) AS known, l.job_id, l.attempt
FROM (SELECT 1) one LEFT JOIN leases l ON l.worker_id = $1
