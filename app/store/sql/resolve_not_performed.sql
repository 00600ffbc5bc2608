-- $1 job, $2 key, $3 lease in seconds, $4 lock class, $5 forced, $6 reason, $7 actor
-- -> the job, when this statement cleared the intent.
-- Only when the intent's writer is certainly gone: it left, or it was silent for a lease and its lock is free.
-- A call still in flight would else be made a second time.
WITH held AS MATERIALIZED (
  SELECT job_id, tenant FROM dead_letters WHERE job_id = $1 FOR UPDATE
), intent AS MATERIALIZED (
  SELECT e.job_id, e.key, e.attempt, h.tenant, w.lock_key, w.left_at, w.heartbeat_at
  FROM effects e JOIN held h ON h.job_id = e.job_id LEFT JOIN workers w ON w.id = e.worker_id
  WHERE e.job_id = $1 AND e.key = $2 AND e.state = 'intent'
), settled AS MATERIALIZED (
  SELECT * FROM intent
  WHERE CASE WHEN $5::boolean OR lock_key IS NULL OR left_at IS NOT NULL THEN true
             WHEN heartbeat_at > clock_timestamp() - make_interval(secs => $3) THEN false
             ELSE pg_try_advisory_xact_lock($4, lock_key) END
), cleared AS (
  UPDATE effects e SET state = 'cleared' FROM settled s
  WHERE e.job_id = $1 AND e.key = s.key AND e.attempt = s.attempt AND e.state = 'intent'
  RETURNING e.job_id, e.key, s.tenant
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
SELECT tenant, $7, 'resolve', job_id, $6, json_build_object('key', key, 'verdict', 'not_performed', 'forced', $5::boolean)
FROM cleared
RETURNING job_id
