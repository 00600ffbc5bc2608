-- $1 lock class, $2 lock key -> whether this session holds the incarnation's lock now
SELECT pg_try_advisory_lock($1, $2)
