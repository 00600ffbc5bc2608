-- The newest $2 attempts of the job $1: those that ended, the lease it holds now, the outcome that ended it.
SELECT t.attempt, t."end", t.cause, t.error, t.worker_id, w.host, w.pid, t.started_at, t.ended_at
FROM (
  SELECT a.attempt, a."end", a.cause, a.error, a.worker_id, a.started_at, a.ended_at
  FROM attempts a WHERE a.job_id = $1
  UNION ALL
  SELECT l.attempt, NULL, NULL, NULL, l.worker_id, l.started_at, NULL
  FROM leases l WHERE l.job_id = $1
  UNION ALL
  SELECT o.attempt, 'done', NULL, NULL, o.worker_id, o.started_at, o.finished_at
  FROM outcomes o WHERE o.job_id = $1 AND o.state = 'done'
) t
LEFT JOIN workers w ON w.id = t.worker_id
ORDER BY t.attempt DESC
LIMIT $2
