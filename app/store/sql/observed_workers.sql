-- Every process that may still hold leases: what it held up to `settled_at` has been taken back.
-- The first condition is that of the index workers_unsettled; `leave` sees to it that none is missed.
SELECT id, heartbeat_at, left_at IS NOT NULL AS gone
FROM workers
WHERE (settled_at IS NULL OR left_at IS NULL) AND settled_at IS DISTINCT FROM heartbeat_at
