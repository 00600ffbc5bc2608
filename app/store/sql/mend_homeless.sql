-- $1 job, $2 reason, $3 actor -> what was done.
-- A job without a home may have run to its end: it must not run again unasked. It becomes a dead letter of one attempt
-- more, so that nobody can be given the number of the attempt that may be under way.
WITH lost AS MATERIALIZED (
  SELECT j.*
  FROM jobs j
  WHERE j.id = $1
    AND NOT EXISTS (SELECT FROM outbox WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM leases WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM dead_letters WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM outcomes WHERE job_id = $1)
    AND NOT EXISTS (SELECT FROM operator_actions WHERE job_id = $1 AND action IN ('cancel', 'discard'))
), past AS (
  SELECT coalesce(max(attempt), 0) AS attempt,
    count(*) FILTER (WHERE "end" IN ('failed', 'timed_out')) AS failures,
    count(*) FILTER (WHERE "end" = 'released') AS releases
  FROM attempts WHERE job_id = $1
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, "end", cause)
  SELECT id, past.attempt + 1, tenant,
    (SELECT e.worker_id FROM effects e WHERE e.job_id = $1 AND e.attempt = past.attempt + 1 LIMIT 1),
    'lost', 'the row that owned the job was lost'
  FROM lost, past
), dead AS (
  INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes, releases)
  SELECT id, tenant, kind, queue, priority, 'effect_unknown',
    json_build_object('type', 'HomeLost', 'fingerprint', substr(md5('HomeLost' || kind), 1, 16),
      'message', 'the row that owned the job was lost; whether the job ran to its end is not known'),
    substr(md5('HomeLost' || kind), 1, 16), deadline,
    timeout_seconds, attempt + 1, least(failures, max_retries), max_retries, 0, releases
  FROM lost, past
  RETURNING job_id, tenant
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
SELECT tenant, $3, 'repair', job_id, $2,
  json_build_object('done', 'a dead letter now: whether it ran to its end is not known, so replay or discard it')
FROM dead
RETURNING details ->> 'done' AS done
