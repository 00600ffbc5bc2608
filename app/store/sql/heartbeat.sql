-- $1 me, $2 broker_ok, $3 draining, $4 leader, $5 of which jobs to tell, null for all
-- -> one row at least: known, and every lease in my name, or every one of those.
-- The answer is the truth about what I hold. To tell all is to read all, dead rows too, of which a snapshot that is held
-- open keeps every one; those of which the ids are given are looked up.
WITH me AS (
  UPDATE workers
  SET heartbeat_at = clock_timestamp(), broker_ok = $2, draining = $3, leader = $4
  WHERE id = $1 AND left_at IS NULL
  RETURNING id
)
SELECT EXISTS (SELECT FROM me) AS known, l.job_id, l.attempt
FROM (SELECT 1) one LEFT JOIN LATERAL (
  SELECT job_id, attempt FROM leases WHERE worker_id = $1 AND $5::uuid[] IS NULL
  UNION ALL
  SELECT job_id, attempt FROM leases WHERE job_id = ANY($5::uuid[]) AND worker_id = $1
) l ON true
