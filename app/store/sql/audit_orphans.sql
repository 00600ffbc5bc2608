-- Effects, attempts and idempotency keys belong to a job. $1: most findings, $2: least job.
SELECT owned.job_id, string_agg(DISTINCT owned.what, ', ') || ' without a job' AS detail
FROM (SELECT job_id, 'effects' AS what FROM effects WHERE job_id >= $2
      UNION ALL SELECT job_id, 'attempts' FROM attempts WHERE job_id >= $2
      UNION ALL SELECT job_id, 'idempotency keys' FROM idempotency_keys WHERE job_id >= $2) AS owned
WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = owned.job_id)
GROUP BY owned.job_id
ORDER BY owned.job_id
LIMIT $1
