-- Newest cancelled jobs, from the partial index. Parameters as page_jobs.sql.
SELECT id, looked, wanted
FROM (
  SELECT job_id AS id, row_number() OVER (ORDER BY job_id DESC) AS looked,
         ($3::text IS NULL OR kind = $3) AND ($4::text IS NULL OR queue = $4) AS wanted
  FROM outcomes
  WHERE state = 'cancelled' AND job_id < $1 AND job_id >= $2
  ORDER BY job_id DESC
  LIMIT $6
) page
WHERE wanted OR looked = $6
ORDER BY id DESC
LIMIT $5
