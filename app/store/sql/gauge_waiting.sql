-- Due jobs of each queue, counted to $1, and since when the oldest of them has been due. A loose index scan finds
-- the queues; the least id of each priority stands for the oldest. (`>= p` with this order leaves the planner no
-- other index than the one of ready rows.)
WITH RECURSIVE queues (queue) AS (
  (SELECT queue FROM outbox WHERE NOT deferred ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT o.queue FROM outbox o WHERE NOT o.deferred AND o.queue > q.queue ORDER BY o.queue LIMIT 1)
  FROM queues q
  WHERE q.queue IS NOT NULL
)
SELECT q.queue,
       (SELECT count(*) FROM (SELECT FROM outbox o WHERE o.queue = q.queue AND NOT o.deferred LIMIT $1) s) AS waiting,
       (SELECT extract(epoch FROM clock_timestamp() - min(least_id.due_at))::float8
        FROM generate_series(0, 9) p
        CROSS JOIN LATERAL (
          SELECT o.due_at FROM outbox o
          WHERE o.queue = q.queue AND o.priority >= p AND NOT o.deferred
          ORDER BY o.priority, o.job_id LIMIT 1
        ) least_id) AS oldest_seconds
FROM queues q
WHERE q.queue IS NOT NULL
ORDER BY q.queue
