-- A lease belongs to a worker that is on record and has not both left and been settled. $1: most findings, $2: least job.
SELECT l.job_id,
       CASE WHEN w.id IS NULL THEN 'leased by a worker nobody knows: ' ELSE 'leased by a worker that is settled: ' END
       || l.worker_id AS detail
FROM leases l
LEFT JOIN workers w ON w.id = l.worker_id
WHERE l.job_id >= $2 AND (w.id IS NULL OR (w.left_at IS NOT NULL AND w.settled_at = w.heartbeat_at))
ORDER BY l.job_id
LIMIT $1
