-- An effect was begun by an attempt that its job has or had, and by the worker of that attempt.
-- $1: most findings, $2: least job.
SELECT e.job_id, 'effect ' || e.key || ' is of attempt ' || e.attempt || ' by a worker that did not have it' AS detail
FROM effects e
WHERE e.job_id >= $2
  AND EXISTS (SELECT FROM jobs j WHERE j.id = e.job_id)
  AND NOT EXISTS (
    SELECT FROM attempts a WHERE a.job_id = e.job_id AND a.attempt = e.attempt AND a.worker_id = e.worker_id)
  AND NOT EXISTS (
    SELECT FROM leases l WHERE l.job_id = e.job_id AND l.attempt = e.attempt AND l.worker_id = e.worker_id)
  AND NOT EXISTS (
    SELECT FROM outcomes o
    WHERE o.job_id = e.job_id AND o.state = 'done' AND o.attempt = e.attempt AND o.worker_id = e.worker_id)
ORDER BY e.job_id, e.key
LIMIT $1
