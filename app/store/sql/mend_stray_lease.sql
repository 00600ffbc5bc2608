-- $1 job, $2 reason, $3 actor -> what was done.
-- A lease whose worker nobody knows, or that was settled without it, is shown to the rescue again: the one way by
-- which a lease is taken from anybody. A process that is alive without a row has been told so and ends.
WITH stray AS MATERIALIZED (
  SELECT l.job_id, l.tenant, l.worker_id
  FROM leases l LEFT JOIN workers w ON w.id = l.worker_id
  WHERE l.job_id = $1 AND (w.id IS NULL OR (w.left_at IS NOT NULL AND w.settled_at = w.heartbeat_at))
), shown AS (
  INSERT INTO workers (id, role, host, pid, queues, kinds, slots, transport, left_at, left_cause)
  SELECT worker_id, 'worker', 'unknown', 0, '{}', '{}', 0, 'unknown', clock_timestamp(), 'unknown to the fleet' FROM stray
  ON CONFLICT (id) DO UPDATE SET settled_at = NULL WHERE workers.left_at IS NOT NULL
  RETURNING id
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
SELECT s.tenant, $3, 'repair', s.job_id, $2,
  json_build_object('done', 'its lease is left to the rescue again', 'worker', s.worker_id)
FROM stray s JOIN shown ON shown.id = s.worker_id
RETURNING details ->> 'done' AS done
