-- $1 worker ids, ascending. Claims hold these rows FOR KEY SHARE: after this, none is in flight.
SELECT id FROM workers WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE
