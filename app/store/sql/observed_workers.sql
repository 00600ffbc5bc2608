-- Every process that may still hold leases: what it held up to `settled_at` has been taken back.
SELECT id, heartbeat_at, left_at IS NOT NULL AS gone
FROM workers
WHERE settled_at IS DISTINCT FROM heartbeat_at
