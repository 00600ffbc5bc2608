-- $1 after this id, $2 most rows, $3 dead letters too -> jobs that wait, run, or may be replayed, oldest first, with inputs.
WITH home AS MATERIALIZED (
  SELECT * FROM (
    (SELECT job_id, kind, queue, 'waiting' AS standing FROM outbox WHERE job_id > $1 ORDER BY job_id LIMIT $2)
    UNION ALL
    (SELECT job_id, kind, queue, 'running' FROM leases WHERE job_id > $1 ORDER BY job_id LIMIT $2)
    UNION ALL
    (SELECT job_id, kind, queue, 'dead' FROM dead_letters WHERE $3::boolean AND job_id > $1 ORDER BY job_id LIMIT $2)
  ) AS each
  ORDER BY job_id LIMIT $2
)
SELECT h.job_id, h.kind, h.queue, h.standing, j.input
FROM home h
CROSS JOIN LATERAL (SELECT input FROM jobs WHERE id = h.job_id OFFSET 0) j
ORDER BY h.job_id
