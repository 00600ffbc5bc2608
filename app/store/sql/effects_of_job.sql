-- The first $2 effects of the job $1, in the order they were begun.
SELECT key, state, policy, calls, attempt, result, intent_at, recorded_at
FROM effects
WHERE job_id = $1
ORDER BY intent_at, key
LIMIT $2
