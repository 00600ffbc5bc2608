-- $1 grace in seconds, $2 most rows to count -> per queue what is deferred or dead, and who serves it
SELECT queue, sum(deferred)::bigint AS deferred, sum(dead)::bigint AS dead, sum(workers)::bigint AS workers,
  sum(slots)::bigint AS slots
FROM (
  SELECT queue, 1 AS deferred, 0 AS dead, 0 AS workers, 0 AS slots
  FROM (SELECT queue FROM outbox WHERE deferred LIMIT $2) AS later
  UNION ALL
  SELECT queue, 0, 1, 0, 0 FROM (SELECT queue FROM dead_letters LIMIT $2) AS stopped
  UNION ALL
  SELECT queue, 0, 0, 1, slots
  FROM workers CROSS JOIN LATERAL unnest(queues) AS queue
  WHERE role = 'worker' AND left_at IS NULL AND heartbeat_at > clock_timestamp() - make_interval(secs => $1)
) AS lanes
GROUP BY queue
ORDER BY queue
