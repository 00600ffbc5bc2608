-- $1 id, $2 attempt, $3 progress (JSON text)
-- A lease that is locked is left alone: it may be by the transaction of the very handler that waits here.
WITH held AS MATERIALIZED (
  SELECT job_id, attempt FROM leases WHERE job_id = $1 AND attempt = $2 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE leases l SET progress = $3::json FROM held h WHERE l.job_id = h.job_id AND l.attempt = h.attempt
