-- $1 id, $2 attempt, $3 key, $4 the attempt that wrote the intent, $5 lease seconds, $6 lock class
-- -> 1 when the intent is mine now. Its writer must be certainly gone: it left, or it has been silent for a lease and
-- its lock is free, or it ended that attempt itself and its calls with it. A writer that may still be calling keeps it.
WITH held AS MATERIALIZED (
  SELECT l.job_id, l.attempt, l.worker_id FROM leases l WHERE l.job_id = $1 AND l.attempt = $2 FOR SHARE OF l
), writer AS MATERIALIZED (
  SELECT e.job_id, e.key, w.id, w.lock_key, w.left_at, w.heartbeat_at, EXISTS (
    SELECT FROM attempts a WHERE a.job_id = $1 AND a.attempt = $4
      AND (a."end" IN ('failed', 'released') OR (a."end" = 'timed_out' AND a.error IS NOT NULL))
  ) AS ended
  FROM effects e LEFT JOIN workers w ON w.id = e.worker_id
  WHERE e.job_id = $1 AND e.key = $3 AND e.attempt = $4 AND e.state = 'intent'
)
UPDATE effects e SET attempt = h.attempt, worker_id = h.worker_id, intent_at = clock_timestamp()
FROM held h, writer w
WHERE e.job_id = $1 AND e.key = $3 AND e.attempt = $4 AND e.state = 'intent'
  AND (w.id IS NULL OR w.left_at IS NOT NULL OR w.ended OR w.id = h.worker_id
    OR (w.heartbeat_at < clock_timestamp() - make_interval(secs => $5) AND pg_try_advisory_xact_lock($6, w.lock_key)))
RETURNING 1
