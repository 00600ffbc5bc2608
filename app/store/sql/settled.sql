-- Which of the sorted ids $1 are done, cancelled or dead.
SELECT o.job_id
FROM outcomes o
WHERE o.job_id = ANY($1::uuid[]) AND o.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
UNION ALL
SELECT d.job_id
FROM dead_letters d
WHERE d.job_id = ANY($1::uuid[])
