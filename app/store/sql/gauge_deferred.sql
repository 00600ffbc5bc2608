-- Jobs that are not due yet, counted to $1.
SELECT count(*) FROM (SELECT FROM outbox WHERE deferred LIMIT $1) s
