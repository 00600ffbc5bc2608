-- $1 replay id, $2 jobs, ascending, $3 reason, $4 actor -> the jobs this statement put back into the outbox.
-- Lock first, then the gate: two replay ids at once would else spend one of them for nothing.
-- OFFSET 0: a look-up per job, and not the effects of every job between the first and the last.
-- The budgets begin anew, the attempt does not; a deadline that has passed is not carried over.
WITH picked AS MATERIALIZED (
  SELECT d.job_id FROM dead_letters d
  WHERE d.job_id = ANY($2::uuid[])
    AND NOT EXISTS (
      SELECT FROM effects e
      WHERE e.job_id = d.job_id AND e.job_id BETWEEN ($2::uuid[])[1] AND ($2::uuid[])[cardinality($2::uuid[])]
        AND e.state = 'intent' AND e.policy <> 'repeatable' OFFSET 0)
  ORDER BY d.job_id FOR UPDATE OF d
), gate AS (
  INSERT INTO replay_items (replay_id, job_id) SELECT $1, job_id FROM picked ORDER BY job_id
  ON CONFLICT DO NOTHING RETURNING job_id
), taken AS (
  DELETE FROM dead_letters d USING gate g WHERE d.job_id = g.job_id RETURNING d.*
), audited AS (
  INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
  SELECT tenant, $4, 'replay', job_id, $3, json_build_object('replay_id', $1::text, 'was', reason) FROM taken
)
INSERT INTO outbox (job_id, tenant, kind, queue, priority, deadline, timeout_seconds, attempt, max_retries)
SELECT job_id, tenant, kind, queue, priority, CASE WHEN deadline > now() THEN deadline END, timeout_seconds,
  attempt, max_retries
FROM taken ORDER BY job_id
RETURNING job_id, queue
