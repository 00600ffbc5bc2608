-- $1 back-off base, $2 cap in seconds, $3 crash budget.
-- Leases whose attempt ran far past its time although the worker lives: a wedged process. As a retry that timed out.
WITH held AS MATERIALIZED (
  SELECT l.*, (l.deadline IS NOT NULL AND l.deadline <= now()) AS late, l.retries >= l.max_retries AS spent
  FROM leases l WHERE l.run_until < now()
  ORDER BY l.job_id FOR UPDATE OF l SKIP LOCKED
), taken AS (
  DELETE FROM leases l USING held h WHERE l.job_id = h.job_id AND l.attempt = h.attempt RETURNING h.*
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, started_at, "end", cause)
  SELECT job_id, attempt, tenant, worker_id, started_at, 'timed_out', 'the worker did not end the attempt in time' FROM taken
), buried AS (
  INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, worker_id, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes, releases, started_at)
  SELECT job_id, tenant, kind, queue, priority, CASE WHEN late THEN 'expired' ELSE 'timed_out' END,
    json_build_object('type', 'TimedOut', 'message', 'the worker did not end the attempt in time',
      'fingerprint', substr(md5('TimedOut' || kind), 1, 16)),
    substr(md5('TimedOut' || kind), 1, 16), worker_id, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes, releases, started_at
  FROM taken WHERE late OR spent
  RETURNING job_id, queue
), returned AS (
  INSERT INTO outbox (job_id, tenant, kind, queue, priority, due_at, deferred, solo, deadline, timeout_seconds,
    attempt, retries, max_retries, crashes, releases)
  SELECT job_id, tenant, kind, queue, priority,
    now() + make_interval(secs => random() * least($2::float8, $1::float8 * 2 ^ retries)), true,
    crashes + 1 >= $3, deadline, timeout_seconds, attempt, retries + 1, max_retries, crashes, releases
  FROM taken WHERE NOT late AND NOT spent
  RETURNING job_id, queue
)
SELECT job_id, queue, true AS dead FROM buried
UNION ALL
SELECT job_id, queue, false FROM returned
