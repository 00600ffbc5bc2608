-- $1 jobs, ascending, $2 reason, $3 actor -> the jobs this statement ended
WITH picked AS MATERIALIZED (
  SELECT job_id FROM dead_letters WHERE job_id = ANY($1::uuid[]) ORDER BY job_id FOR UPDATE
), taken AS (
  DELETE FROM dead_letters d USING picked p WHERE d.job_id = p.job_id RETURNING d.*
), audited AS (
  INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
  SELECT tenant, $3, 'discard', job_id, $2, json_build_object('was', reason, 'error', error) FROM taken
)
INSERT INTO outcomes (job_id, tenant, kind, queue, state, reason, worker_id, attempt, retries, crashes, releases, started_at)
SELECT job_id, tenant, kind, queue, 'cancelled', 'discarded', worker_id, attempt, retries, crashes, releases, started_at
FROM taken ORDER BY job_id
RETURNING job_id
