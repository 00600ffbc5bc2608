-- Attempts 1..n of a job have ended and left a row each, but for the one that runs or finished it. $1: most findings, $2: least job.
SELECT h.job_id,
       h.ended || ' attempts have ended, ' || coalesce(a.kept, 0) || ' are on record, the last is '
       || coalesce(a.last, 0) AS detail
FROM (SELECT job_id, attempt AS ended FROM outbox WHERE job_id >= $2
      UNION ALL SELECT job_id, attempt - 1 FROM leases WHERE job_id >= $2
      UNION ALL SELECT job_id, attempt FROM dead_letters WHERE job_id >= $2
      UNION ALL SELECT job_id, attempt - (state = 'done')::int FROM outcomes WHERE job_id >= $2) AS h
LEFT JOIN (SELECT job_id, count(*) AS kept, max(attempt) AS last FROM attempts WHERE job_id >= $2
           GROUP BY job_id) AS a USING (job_id)
WHERE coalesce(a.kept, 0) <> h.ended OR coalesce(a.last, 0) <> h.ended
ORDER BY h.job_id
LIMIT $1
