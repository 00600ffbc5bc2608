-- $1 ids, ascending, $2 attempts, $3 keys, $4 policies, $5 digests of the arguments, $6 whether this attempt has called
-- before and calls again (sent twice because its answer was lost, the statement counts one call; again, two)
-- -> per wish, in order: held (the lease is mine), granted (call now), and else the row that is there.
-- OFFSET 0: only what is not granted is read, row by row; a join would read the effects of every job between the first
-- and the last.
-- FOR SHARE is part of the guard: a rescue waits for this commit, or this statement sees the rescue.
WITH want AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::bytea[], $6::boolean[]) WITH ORDINALITY
    AS w (job_id, attempt, key, policy, args_digest, again, nth)
), held AS MATERIALIZED (
  SELECT l.job_id, l.attempt, l.worker_id, l.tenant
  FROM leases l
  WHERE (l.job_id, l.attempt) IN (SELECT job_id, attempt FROM want)
  ORDER BY l.job_id FOR SHARE OF l
), granted AS (
  INSERT INTO effects AS e (job_id, key, tenant, attempt, worker_id, policy, args_digest, state, calls)
  SELECT w.job_id, w.key, h.tenant, h.attempt, h.worker_id, w.policy, w.args_digest, 'intent', 1 + w.again::int
  FROM want w JOIN held h ON h.job_id = w.job_id AND h.attempt = w.attempt
  ORDER BY w.job_id, w.key
  ON CONFLICT (job_id, key) DO UPDATE
  SET attempt = excluded.attempt, worker_id = excluded.worker_id, policy = excluded.policy, state = 'intent',
    intent_at = clock_timestamp(), result = NULL, args_digest = excluded.args_digest,
    calls = CASE WHEN e.attempt = excluded.attempt AND e.state = 'intent' THEN e.calls + excluded.calls - 1 ELSE e.calls + 1 END
  WHERE (e.state = 'cleared')
    OR (e.state = 'intent' AND e.args_digest = excluded.args_digest
        AND (e.attempt = excluded.attempt OR (e.policy = 'repeatable' AND excluded.policy = 'repeatable')))
  RETURNING job_id, key
)
SELECT h.job_id IS NOT NULL AS held, g.job_id IS NOT NULL AS granted,
  e.key, e.attempt, e.policy, e.args_digest, e.state, e.result, e.calls
FROM want w
LEFT JOIN held h ON h.job_id = w.job_id AND h.attempt = w.attempt
LEFT JOIN granted g ON g.job_id = w.job_id AND g.key = w.key
LEFT JOIN LATERAL (
  SELECT key, attempt, policy, args_digest, state, result, calls FROM effects e
  WHERE g.job_id IS NULL AND e.job_id = w.job_id AND e.key = w.key
    AND e.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
  OFFSET 0
) e ON true
ORDER BY w.nth
