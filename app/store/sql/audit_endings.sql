-- A job that ended has a result or an error, never both or none; a cancelled one has neither. $1: most findings, $2: least job.
SELECT job_id, detail
FROM (SELECT o.job_id,
             CASE WHEN o.state = 'done' AND o.result IS NULL THEN 'done without a result'
                  WHEN o.state = 'cancelled' AND o.result IS NOT NULL THEN 'cancelled with a result' END AS detail
      FROM outcomes o WHERE o.job_id >= $2
      UNION ALL
      SELECT d.job_id, CASE WHEN json_typeof(d.error) <> 'object' THEN 'dead without an error' END
      FROM dead_letters d WHERE d.job_id >= $2) AS ended
WHERE detail IS NOT NULL
ORDER BY job_id
LIMIT $1
