-- $1 days, $2 at most so many
-- -> jobs that have been due for so long while their queue had workers, and none, live or past, that knew their kind
WITH heard AS MATERIALIZED (
  SELECT queues, kinds FROM workers
  WHERE role = 'worker' AND heartbeat_at > now() - make_interval(secs => $1::float8 * 86400)
), picked AS MATERIALIZED (
  SELECT o.job_id FROM outbox o
  WHERE NOT o.deferred AND o.due_at <= now() - make_interval(secs => $1::float8 * 86400)
    AND EXISTS (SELECT FROM heard h WHERE o.queue = ANY (h.queues))
    AND NOT EXISTS (SELECT FROM heard h WHERE o.queue = ANY (h.queues) AND o.kind = ANY (h.kinds))
  ORDER BY o.job_id LIMIT $2 FOR UPDATE OF o SKIP LOCKED
), gone AS (
  DELETE FROM outbox o USING picked p WHERE o.job_id = p.job_id RETURNING o.*
)
INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, deadline,
  timeout_seconds, attempt, retries, max_retries, crashes, releases)
SELECT job_id, tenant, kind, queue, priority, 'unknown_kind',
  json_build_object('type', 'UnknownKind', 'message', 'no worker of its queue knew the kind for ' || $1 || ' days',
    'fingerprint', substr(md5('UnknownKind' || kind), 1, 16)),
  substr(md5('UnknownKind' || kind), 1, 16), deadline,
  timeout_seconds, attempt, retries, max_retries, crashes, releases
FROM gone
RETURNING job_id
