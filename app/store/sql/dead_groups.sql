-- Dead letters that failed alike, largest group first. $1 groups
SELECT kind, reason, fingerprint, count(*) AS jobs, min(died_at) AS first_died_at, max(died_at) AS last_died_at,
  (array_agg(job_id ORDER BY died_at DESC, job_id DESC))[1] AS latest_id,
  (array_agg(error ->> 'type' ORDER BY died_at DESC, job_id DESC))[1] AS error_type,
  (array_agg(error ->> 'message' ORDER BY died_at DESC, job_id DESC))[1] AS error_message
FROM dead_letters
GROUP BY kind, reason, fingerprint
ORDER BY jobs DESC, last_died_at DESC, kind, reason, fingerprint
LIMIT $1
