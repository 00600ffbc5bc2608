-- Newest waiting jobs in one state. Parameters as page_jobs.sql, $7 state.
SELECT id, looked, wanted
FROM (
  SELECT job_id AS id, row_number() OVER (ORDER BY job_id DESC) AS looked,
         CASE WHEN NOT deferred OR due_at <= now() THEN 'queued'
              WHEN attempt = 0 THEN 'scheduled' ELSE 'retrying' END = $7
         AND ($3::text IS NULL OR kind = $3) AND ($4::text IS NULL OR queue = $4) AS wanted
  FROM outbox
  WHERE job_id < $1 AND job_id >= $2
  ORDER BY job_id DESC
  LIMIT $6
) page
WHERE wanted OR looked = $6
ORDER BY id DESC
LIMIT $5
