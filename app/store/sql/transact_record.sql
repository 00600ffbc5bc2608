-- $1 id, $2 key, $3 tenant, $4 attempt, $5 worker, $6 digest of the arguments, $7 result (JSON text)
-- -> 1 when it is recorded now; nothing when the key is on record
INSERT INTO effects AS e (job_id, key, tenant, attempt, worker_id, policy, args_digest, state, result, recorded_at)
VALUES ($1, $2, $3, $4, $5, 'repeatable', $6, 'recorded', $7::json, clock_timestamp())
ON CONFLICT (job_id, key) DO UPDATE
SET state = 'recorded', attempt = excluded.attempt, worker_id = excluded.worker_id, args_digest = excluded.args_digest,
  result = excluded.result, recorded_at = excluded.recorded_at, calls = e.calls + 1
WHERE e.state = 'cleared'
RETURNING 1
