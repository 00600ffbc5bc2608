-- Live processes, counted. $1 seconds of silence that are still live, $2 queue or null for any, $3 kind or null for any.
-- broker_ok is null when no live process has an opinion, false when one of them is cut off.
SELECT clock_timestamp() AS at,
       count(*) FILTER (WHERE serving) AS workers,
       count(*) FILTER (WHERE serving AND ($3::text IS NULL OR $3 = ANY(kinds))) AS knowing,
       coalesce(sum(slots) FILTER (WHERE serving AND NOT draining), 0) AS slots,
       count(*) FILTER (WHERE role = 'relay') AS relays,
       coalesce(bool_or(leader), false) AS leader,
       bool_and(broker_ok) AS broker_ok
FROM (
  SELECT role, kinds, slots, leader, broker_ok, draining,
         role = 'worker' AND ($2::text IS NULL OR $2 = ANY(queues)) AS serving
  FROM workers
  WHERE left_at IS NULL AND heartbeat_at > clock_timestamp() - make_interval(secs => $1)
) live
