-- $1 job, $2 reason, $3 actor, $4 crash budget -> its queue, when this statement put it back into the outbox.
-- A retry is charged for the attempt that failed; a job whose kind nobody knew did not get one.
WITH picked AS MATERIALIZED (
  SELECT d.* FROM dead_letters d
  WHERE d.job_id = $1 AND (d.retries < d.max_retries OR d.reason = 'unknown_kind')
    AND (d.deadline IS NULL OR d.deadline > now())
    AND NOT EXISTS (SELECT FROM effects e WHERE e.job_id = $1 AND e.state = 'intent' AND e.policy <> 'repeatable')
  FOR UPDATE OF d
), taken AS (
  DELETE FROM dead_letters d USING picked p WHERE d.job_id = p.job_id RETURNING p.*
), audited AS (
  INSERT INTO operator_actions (tenant, actor, action, job_id, reason)
  SELECT tenant, $3, 'retry', job_id, $2 FROM taken
)
INSERT INTO outbox (job_id, tenant, kind, queue, priority, solo, deadline, timeout_seconds,
  attempt, retries, max_retries, crashes, releases)
SELECT job_id, tenant, kind, queue, priority, crashes + 1 >= $4, deadline, timeout_seconds,
  attempt, retries + (reason <> 'unknown_kind')::int, max_retries, crashes, releases
FROM taken
RETURNING queue
