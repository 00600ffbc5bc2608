-- $1 lock class. One repair at a time, until its transaction ends: the next one's snapshot shows what it did.
SELECT pg_advisory_xact_lock($1, 1)
