-- $1 ids, ascending, $2 attempts, $3 delays in seconds, $4 how each ended, $5 errors (JSON text), $6 whether a retry is
-- charged, $7 crash budget -> the ids that were mine and wait again. The last start stays alone, however it is come by.
WITH picked AS MATERIALIZED (
  SELECT l.job_id, l.attempt, w.delay_seconds, w."end", w.error, w.charged
  FROM leases l JOIN unnest($1::uuid[], $2::int[], $3::float8[], $4::text[], $5::text[], $6::boolean[])
      AS w (job_id, attempt, delay_seconds, "end", error, charged)
    ON l.job_id = w.job_id AND l.attempt = w.attempt
  ORDER BY l.job_id FOR UPDATE OF l
), gone AS (
  DELETE FROM leases l USING picked p WHERE l.job_id = p.job_id AND l.attempt = p.attempt
  RETURNING l.*, p.delay_seconds, p."end", p.error, p.charged
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, started_at, "end", error)
  SELECT job_id, attempt, tenant, worker_id, started_at, "end", error::json FROM gone
)
INSERT INTO outbox (job_id, tenant, kind, queue, priority, due_at, deferred, solo, deadline, timeout_seconds,
  attempt, retries, max_retries, crashes, releases)
SELECT job_id, tenant, kind, queue, priority, clock_timestamp() + make_interval(secs => delay_seconds), true,
  crashes + 1 >= $7, deadline, timeout_seconds, attempt, retries + charged::int, max_retries, crashes, releases + (NOT charged)::int
FROM gone
RETURNING job_id
