-- Every row of jobs owns exactly one row among its homes. $1: most findings, $2: least job.
SELECT job_id,
       CASE WHEN count(*) FILTER (WHERE home = 'jobs') = 0 THEN 'no job, but a row in '
            WHEN count(*) = 1 THEN 'a job without a home'
            ELSE 'a job with ' || count(*) - 1 || ' homes: ' END
       || coalesce(string_agg(home, ', ' ORDER BY home) FILTER (WHERE home <> 'jobs'), '') AS detail
FROM (SELECT id AS job_id, 'jobs' AS home FROM jobs WHERE id >= $2
      UNION ALL SELECT job_id, 'outbox' FROM outbox WHERE job_id >= $2
      UNION ALL SELECT job_id, 'leases' FROM leases WHERE job_id >= $2
      UNION ALL SELECT job_id, 'dead_letters' FROM dead_letters WHERE job_id >= $2
      UNION ALL SELECT job_id, 'outcomes' FROM outcomes WHERE job_id >= $2) AS owned
GROUP BY job_id
HAVING count(*) <> 2 OR count(*) FILTER (WHERE home = 'jobs') <> 1
ORDER BY job_id
LIMIT $1
