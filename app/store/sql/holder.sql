-- The worker that holds the job $1, how long it has been silent, and when the attempt must be over.
SELECT l.worker_id, w.host, w.pid, w.left_cause, w.left_at IS NOT NULL AS gone, l.run_until,
       extract(epoch FROM clock_timestamp() - w.heartbeat_at)::float8 AS silent_seconds
FROM leases l
LEFT JOIN workers w ON w.id = l.worker_id
WHERE l.job_id = $1
