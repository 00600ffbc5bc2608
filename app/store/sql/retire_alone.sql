-- $1 key of a session's lock -> whether nobody else retires now.
SELECT pg_try_advisory_lock($1)
