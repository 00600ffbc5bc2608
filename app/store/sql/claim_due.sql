-- $1 queue, $2 me, $3 kinds I know, $4 grace and $5 suspect in seconds, $6 at most this many,
-- $7 only rows due for longer than so many seconds. Straight from the outbox, first priority first.
WITH me AS MATERIALIZED (
  SELECT id FROM workers
  WHERE id = $2 AND left_at IS NULL AND heartbeat_at > clock_timestamp() - make_interval(secs => $4)
  FOR KEY SHARE
), picked AS MATERIALIZED (
  SELECT o.job_id FROM outbox o
  WHERE o.queue = $1 AND NOT o.deferred AND NOT o.solo AND o.kind = ANY($3::text[])
    AND o.due_at <= now() - make_interval(secs => $7) AND (o.deadline IS NULL OR o.deadline > now()) AND EXISTS (SELECT FROM me)
  ORDER BY o.priority, o.job_id LIMIT $6 FOR UPDATE SKIP LOCKED
), moved AS (
  DELETE FROM outbox o USING picked p WHERE o.job_id = p.job_id RETURNING o.*, clock_timestamp() AS at
), leased AS (
  INSERT INTO leases (job_id, tenant, kind, queue, priority, worker_id, started_at, run_until, deadline, timeout_seconds,
    attempt, retries, max_retries, crashes, releases)
  SELECT job_id, tenant, kind, queue, priority, $2, at,
    least(at + make_interval(secs => timeout_seconds), deadline) + make_interval(secs => $5),
    deadline, timeout_seconds, attempt + 1, retries, max_retries, crashes, releases
  FROM moved
  RETURNING *
)
SELECT l.job_id, l.attempt, l.tenant, l.kind, l.queue, j.input,
  extract(epoch FROM l.run_until - l.started_at)::float8 - $5 AS run_seconds,
  l.deadline IS NOT NULL AND l.deadline < l.started_at + make_interval(secs => l.timeout_seconds) AS deadline_binds,
  l.retries, l.max_retries, l.crashes, l.releases, l.deadline, true AS fresh
FROM leased l JOIN jobs j ON j.id = l.job_id
  AND j.id BETWEEN (SELECT job_id FROM leased ORDER BY job_id LIMIT 1) AND (SELECT job_id FROM leased ORDER BY job_id DESC LIMIT 1)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false
WHERE NOT EXISTS (SELECT FROM me)
