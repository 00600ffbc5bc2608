-- $1 ids, ascending, $2 attempts, $3 reasons, $4 errors (JSON text), $5 fingerprints, $6 how each ended
-- -> the ids that were mine and are dead
WITH picked AS MATERIALIZED (
  SELECT l.job_id, l.attempt, w.reason, w.error, w.fingerprint, w."end"
  FROM leases l JOIN unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[])
      AS w (job_id, attempt, reason, error, fingerprint, "end")
    ON l.job_id = w.job_id AND l.attempt = w.attempt
  ORDER BY l.job_id FOR UPDATE OF l
), gone AS (
  DELETE FROM leases l USING picked p WHERE l.job_id = p.job_id AND l.attempt = p.attempt
  RETURNING l.*, p.reason, p.error, p.fingerprint, p."end"
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, started_at, "end", error)
  SELECT job_id, attempt, tenant, worker_id, started_at, "end", error::json FROM gone
)
INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, worker_id, deadline,
  timeout_seconds, attempt, retries, max_retries, crashes, releases, started_at)
SELECT job_id, tenant, kind, queue, priority, reason, error::json, fingerprint, worker_id, deadline,
  timeout_seconds, attempt, retries, max_retries, crashes, releases, started_at
FROM gone
RETURNING job_id
