-- $1 job, $2 reason, $3 actor -> what was done.
-- A job without a home that somebody cancelled or discarded is cancelled: that is final, whatever was lost.
WITH lost AS MATERIALIZED (
  SELECT j.id, j.tenant, j.kind, j.queue,
    (SELECT a.action FROM operator_actions a
     WHERE a.job_id = $1 AND a.action IN ('cancel', 'discard') ORDER BY a.id DESC LIMIT 1) AS action
  FROM jobs j
  WHERE j.id = $1
    AND NOT EXISTS (SELECT FROM outbox WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM leases WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM dead_letters WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM outcomes WHERE job_id = $1)
), past AS (
  SELECT coalesce(max(attempt), 0) AS attempt, count(*) FILTER (WHERE "end" = 'released') AS releases
  FROM attempts WHERE job_id = $1
), ended AS (
  INSERT INTO outcomes (job_id, tenant, kind, queue, state, reason, attempt, retries, crashes, releases)
  SELECT id, tenant, kind, queue, 'cancelled', CASE action WHEN 'discard' THEN 'discarded' END, attempt, 0, 0, releases
  FROM lost, past WHERE action IS NOT NULL
  RETURNING job_id, tenant
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
SELECT tenant, $3, 'repair', job_id, $2, json_build_object('done', 'cancelled, as somebody had it cancelled') FROM ended
RETURNING details ->> 'done' AS done
