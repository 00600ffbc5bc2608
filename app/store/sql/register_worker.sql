-- $1 id, $2 role, $3 host, $4 pid, $5 queues, $6 kinds, $7 slots, $8 transport -> lock_key. May be sent again.
INSERT INTO workers (id, role, host, pid, queues, kinds, slots, transport)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET pid = excluded.pid
RETURNING lock_key
