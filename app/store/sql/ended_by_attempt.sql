-- $1 ids, ascending, $2 attempts -> those of my attempts that a statement of mine has already ended:
-- what a reply lost on the way would have said.
SELECT w.job_id
FROM unnest($1::uuid[], $2::int[]) AS w (job_id, attempt)
WHERE EXISTS (
    SELECT FROM outcomes o WHERE o.job_id = w.job_id AND o.attempt = w.attempt AND o.state = 'done'
      AND o.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])])
  OR EXISTS (
    SELECT FROM attempts a WHERE a.job_id = w.job_id AND a.attempt = w.attempt AND a."end" IN ('failed', 'timed_out', 'released')
      AND a.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])])
