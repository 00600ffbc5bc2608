-- $1 queues that have work due. After the commit that put it there, never inside it: NOTIFY takes a database-wide lock.
SELECT pg_notify('outlast_outbox', queue) FROM unnest($1::text[]) AS queue ORDER BY queue
