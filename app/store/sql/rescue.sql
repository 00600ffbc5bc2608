-- $1 worker ids, $2 the heartbeat_at each was observed with, $3 whether its lock must be free, $4 me,
-- $5 crash budget, $6 back-off base and $7 cap in seconds, $8 lock class.
-- Runs in the transaction that locked the suspects, after it, so that its snapshot shows every claim.
-- A lease that an open transaction of the dead holds is left for the next look, and its worker is not settled until
-- then: waiting for it here would keep every other job from its rescue.
-- -> the jobs taken back, with the queue and where they went
WITH suspects AS MATERIALIZED (
  SELECT w.id, w.lock_key, w.left_cause, s.need_lock
  FROM workers w JOIN unnest($1::uuid[], $2::timestamptz[], $3::boolean[]) AS s (id, seen, need_lock) USING (id)
  WHERE w.heartbeat_at = s.seen AND w.id <> $4
), dead AS MATERIALIZED (
  SELECT id, coalesce(left_cause, 'fell silent') AS cause
  FROM suspects
  WHERE NOT need_lock OR pg_try_advisory_xact_lock($8, lock_key)
), held AS MATERIALIZED (
  SELECT l.*, d.cause, l.crashes + 1 AS crashes_now
  FROM leases l JOIN dead d ON d.id = l.worker_id
  ORDER BY l.job_id FOR UPDATE OF l SKIP LOCKED
), settled AS (
  UPDATE workers w SET settled_at = heartbeat_at FROM dead d
  WHERE w.id = d.id AND NOT EXISTS (
    SELECT FROM leases l WHERE l.worker_id = d.id AND l.job_id NOT IN (SELECT job_id FROM held))
), taken AS (
  DELETE FROM leases l USING held h WHERE l.job_id = h.job_id AND l.attempt = h.attempt RETURNING h.*
), ended AS (
  INSERT INTO attempts (job_id, attempt, tenant, worker_id, started_at, "end", cause)
  SELECT job_id, attempt, tenant, worker_id, started_at, 'lost', cause FROM taken
), buried AS (
  INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, worker_id, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes, releases, started_at)
  SELECT job_id, tenant, kind, queue, priority, 'crashes_exhausted',
    json_build_object('type', 'WorkerLost', 'message', 'the worker was lost ' || crashes_now || ' times, last: ' || cause,
      'fingerprint', substr(md5('WorkerLost' || kind), 1, 16)),
    substr(md5('WorkerLost' || kind), 1, 16), worker_id, deadline,
    timeout_seconds, attempt, retries, max_retries, crashes_now, releases, started_at
  FROM taken WHERE crashes_now >= $5
  RETURNING job_id, queue
), returned AS (
  INSERT INTO outbox (job_id, tenant, kind, queue, priority, due_at, deferred, solo, deadline, timeout_seconds,
    attempt, retries, max_retries, crashes, releases)
  SELECT job_id, tenant, kind, queue, priority, now() + make_interval(secs => delay_seconds), delay_seconds > 0,
    crashes_now + 1 >= $5, deadline, timeout_seconds, attempt, retries, max_retries, crashes_now, releases
  FROM (
    SELECT *, CASE WHEN crashes = 0 THEN 0 ELSE random() * least($7::float8, $6::float8 * 2 ^ least(crashes - 1, 30)) END AS delay_seconds
    FROM taken WHERE crashes_now < $5
  ) t
  RETURNING job_id, queue
)
SELECT job_id, queue, true AS dead FROM buried
UNION ALL
SELECT job_id, queue, false FROM returned
