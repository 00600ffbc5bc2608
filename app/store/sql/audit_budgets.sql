-- Retries stay in their budget, and no retry or crash is charged that no ended attempt explains. $1: most findings, $2: least job.
-- An ended attempt is charged once; a caller's retry charges one retry more, also for an attempt that was a crash.
SELECT h.job_id,
       CASE WHEN h.retries > j.max_retries THEN h.retries || ' retries of ' || j.max_retries
            ELSE h.retries || ' retries and ' || h.crashes || ' crashes charged for ' || h.ended || ' ended attempts'
       END AS detail
FROM (SELECT job_id, retries, crashes, attempt AS ended FROM outbox WHERE job_id >= $2
      UNION ALL SELECT job_id, retries, crashes, attempt - 1 FROM leases WHERE job_id >= $2
      UNION ALL SELECT job_id, retries, crashes, attempt FROM dead_letters WHERE job_id >= $2
      UNION ALL SELECT job_id, retries, crashes, attempt - (state = 'done')::int FROM outcomes
                WHERE job_id >= $2) AS h
JOIN jobs j ON j.id = h.job_id AND j.id >= $2
WHERE h.retries > j.max_retries
   OR (h.retries + h.crashes > h.ended
       AND h.retries + h.crashes > h.ended + (
         SELECT count(*) FROM operator_actions a WHERE a.job_id = h.job_id AND a.action = 'retry'))
ORDER BY h.job_id
LIMIT $1
