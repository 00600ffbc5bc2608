-- -> every queue that has rows due, by hopping from one to the next in the index
WITH RECURSIVE hop AS (
  (SELECT queue FROM outbox WHERE NOT deferred ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT o.queue FROM outbox o WHERE NOT o.deferred AND o.queue > hop.queue ORDER BY o.queue LIMIT 1)
  FROM hop WHERE hop.queue IS NOT NULL
)
SELECT queue FROM hop WHERE queue IS NOT NULL
