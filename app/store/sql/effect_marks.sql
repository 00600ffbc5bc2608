-- When the first $2 effects of the job $1 were begun and recorded; never their results.
SELECT key, state, policy, calls, attempt, intent_at, recorded_at
FROM effects
WHERE job_id = $1
ORDER BY intent_at, key
LIMIT $2
