-- $1 worker ids -> those that nobody knows, and those whose leases have all been taken back since they were last heard
SELECT asked.id
FROM unnest($1::uuid[]) AS asked (id) LEFT JOIN workers w ON w.id = asked.id
WHERE w.id IS NULL OR w.settled_at = w.heartbeat_at
