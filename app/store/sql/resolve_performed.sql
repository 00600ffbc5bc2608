-- $1 job, $2 key, $3 result, $4 reason, $5 actor -> the key, when this statement put the result on record.
-- The dead letter is locked, so that no replay starts meanwhile; without a lease the writer cannot record any more.
WITH held AS MATERIALIZED (
  SELECT job_id, tenant FROM dead_letters WHERE job_id = $1 FOR UPDATE
), recorded AS (
  UPDATE effects e SET state = 'recorded', result = $3, recorded_at = clock_timestamp()
  FROM held h WHERE e.job_id = h.job_id AND e.job_id = $1 AND e.key = $2 AND e.state = 'intent'
  RETURNING e.job_id, e.key, h.tenant
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
SELECT tenant, $5, 'resolve', job_id, $4, json_build_object('key', key, 'verdict', 'performed') FROM recorded
RETURNING job_id
