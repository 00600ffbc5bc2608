-- $1 ids, ascending, $2 attempts, $3 results (JSON text) -> the ids that were mine and are done
WITH picked AS MATERIALIZED (
  SELECT l.job_id, l.attempt, w.result
  FROM leases l JOIN unnest($1::uuid[], $2::int[], $3::text[]) AS w (job_id, attempt, result)
    ON l.job_id = w.job_id AND l.attempt = w.attempt
  ORDER BY l.job_id FOR UPDATE OF l
), gone AS (
  DELETE FROM leases l USING picked p WHERE l.job_id = p.job_id AND l.attempt = p.attempt RETURNING l.*, p.result
)
INSERT INTO outcomes (job_id, tenant, kind, queue, state, result, worker_id, attempt, retries, crashes, releases, started_at)
SELECT job_id, tenant, kind, queue, 'done', result::json, worker_id, attempt, retries, crashes, releases, started_at
FROM gone
RETURNING job_id
