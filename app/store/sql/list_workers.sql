-- $1 also those that have left, $2 rows -> processes, newest first, with how long they have been silent
SELECT w.id, w.role, w.host, w.pid, w.queues, w.kinds, w.slots, w.transport, w.broker_ok, w.leader, w.draining,
  w.started_at, w.heartbeat_at, w.left_at, w.left_cause,
  extract(epoch FROM clock_timestamp() - w.heartbeat_at)::float8 AS silent_seconds,
  (SELECT count(*) FROM leases l WHERE l.worker_id = w.id) AS running
FROM workers w
WHERE w.left_at IS NULL OR $1
ORDER BY w.started_at DESC, w.id
LIMIT $2
