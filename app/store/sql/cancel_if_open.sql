-- $1 job, $2 reason, $3 actor -> the job, when this statement moved it out of outbox or leases.
-- Nothing moved is no proof: a row that changes its home meanwhile is seen in neither. The caller repeats.
WITH waiting AS (
  DELETE FROM outbox WHERE job_id = $1
  RETURNING job_id, tenant, kind, queue, NULL::uuid AS worker_id, attempt, retries, crashes, releases,
    NULL::timestamptz AS started_at
), running AS (
  DELETE FROM leases WHERE job_id = $1
  RETURNING job_id, tenant, kind, queue, worker_id, attempt, retries, crashes, releases, started_at
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, started_at, "end", cause)
  SELECT job_id, attempt, tenant, worker_id, started_at, 'cancelled', $2 FROM running
), cancelled AS (
  INSERT INTO outcomes (job_id, tenant, kind, queue, state, reason, worker_id, attempt, retries, crashes, releases, started_at)
  SELECT job_id, tenant, kind, queue, 'cancelled', $2, worker_id, attempt, retries, crashes, releases, started_at
  FROM (SELECT * FROM waiting UNION ALL SELECT * FROM running) AS moved
  RETURNING job_id, tenant
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason)
SELECT tenant, $3, 'cancel', job_id, $2 FROM cancelled
RETURNING job_id
