-- $1 id, $2 key
SELECT key, attempt, policy, args_digest, state, result, calls FROM effects WHERE job_id = $1 AND key = $2
