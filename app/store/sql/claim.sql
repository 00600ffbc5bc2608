-- $1 ids, ascending, $2 me, $3 kinds I know, $4 grace and $5 suspect in seconds, $6 solo
-- -> the jobs that are mine now; one row of nulls with fresh = false when my own heartbeat is too old to claim.
-- A lease begins when its row has left the outbox, not when this statement came in: the attempt before may have ended
-- in between.
-- FOR KEY SHARE lets heartbeats pass and makes a rescue of me wait for this claim.
WITH me AS MATERIALIZED (
  SELECT id FROM workers
  WHERE id = $2 AND left_at IS NULL AND heartbeat_at > clock_timestamp() - make_interval(secs => $4)
  FOR KEY SHARE
), picked AS MATERIALIZED (
  SELECT o.job_id FROM outbox o
  WHERE o.job_id = ANY($1::uuid[]) AND o.due_at <= now() AND (o.deadline IS NULL OR o.deadline > now())
    AND o.kind = ANY($3::text[]) AND o.solo = $6 AND EXISTS (SELECT FROM me)
  ORDER BY o.job_id FOR UPDATE SKIP LOCKED
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
FROM leased l JOIN jobs j ON j.id = l.job_id AND j.id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false
WHERE NOT EXISTS (SELECT FROM me)
