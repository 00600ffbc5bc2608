-- $1 lock class -> whether this session leads now
SELECT pg_try_advisory_lock($1, 1)
