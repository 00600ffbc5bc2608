-- $1 days -> the incarnations that were settled and silent for so long
DELETE FROM workers
WHERE settled_at = heartbeat_at AND heartbeat_at < now() - make_interval(days => $1)
RETURNING id
