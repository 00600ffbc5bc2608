-- $1 ids, ascending, $2 attempts, $3 causes, $4 release cap, $5 crash budget -> the ids that were mine.
-- Nothing is charged, but past the cap every release counts as a crash: what ends its worker before anything
-- counts must not loop for ever.
WITH picked AS MATERIALIZED (
  SELECT l.job_id, l.attempt, w.cause
  FROM leases l JOIN unnest($1::uuid[], $2::int[], $3::text[]) AS w (job_id, attempt, cause)
    ON l.job_id = w.job_id AND l.attempt = w.attempt
  ORDER BY l.job_id FOR UPDATE OF l
), gone AS (
  DELETE FROM leases l USING picked p WHERE l.job_id = p.job_id AND l.attempt = p.attempt
  RETURNING l.*, p.cause, l.crashes + (l.releases >= $4)::int AS crashes_now
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, started_at, "end", cause)
  SELECT job_id, attempt, tenant, worker_id, started_at, 'released', cause FROM gone
), buried AS (
  INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, worker_id, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes, releases, started_at)
  SELECT job_id, tenant, kind, queue, priority, 'crashes_exhausted',
    json_build_object('type', 'Released', 'message', 'released ' || releases + 1 || ' times, last: ' || cause,
      'fingerprint', substr(md5('Released' || kind), 1, 16)),
    substr(md5('Released' || kind), 1, 16), worker_id, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes_now, releases + 1, started_at
  FROM gone WHERE crashes_now >= $5
  RETURNING job_id
), returned AS (
  INSERT INTO outbox (job_id, tenant, kind, queue, priority, due_at, solo, deadline, timeout_seconds,
    attempt, retries, max_retries, crashes, releases)
  SELECT job_id, tenant, kind, queue, priority, now(), crashes_now + 1 >= $5, deadline, timeout_seconds,
    attempt, retries, max_retries, crashes_now, releases + 1
  FROM gone WHERE crashes_now < $5
  RETURNING job_id
)
SELECT job_id FROM buried
UNION ALL
SELECT job_id FROM returned
