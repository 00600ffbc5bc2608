-- Dead letters, newest death first. $1, $2 death and id before which to begin, $3 least time of death,
-- $4 kind, $5 queue, $6 reason, $7 fingerprint, $8 rows, $9 ids to look at (as page_jobs.sql).
SELECT id, died_at, looked, wanted
FROM (
  SELECT job_id AS id, died_at, row_number() OVER (ORDER BY died_at DESC, job_id DESC) AS looked,
         ($4::text IS NULL OR kind = $4) AND ($5::text IS NULL OR queue = $5)
         AND ($6::text IS NULL OR reason = $6) AND ($7::text IS NULL OR fingerprint = $7) AS wanted
  FROM dead_letters
  WHERE (died_at, job_id) < ($1, $2) AND died_at >= $3
  ORDER BY died_at DESC, job_id DESC
  LIMIT $9
) page
WHERE wanted OR looked = $9
ORDER BY died_at DESC, id DESC
LIMIT $8
