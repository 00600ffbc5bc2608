-- $1 queues, $2 at most so many rows of each, $3 low-water marks: ten ids a queue, one for each priority,
-- $4 the kinds to publish of each queue, comma-separated, null for any
-- -> rows that are due, first priority first.
-- The order of the inner loop over priorities is what LIMIT cuts: sorting would read all ten before it cut.
-- The priority is a range of one so that its order counts: with an equality the planner may walk the primary key
-- past every other row (220 ms instead of 0.3 with 90,000 waiting).
SELECT u.queue, r.job_id, r.attempt, r.priority
FROM unnest($1::text[], $2::int[], $4::text[]) WITH ORDINALITY AS u (queue, rows_max, kinds, n)
CROSS JOIN LATERAL (SELECT string_to_array(u.kinds, ',') AS names OFFSET 0) k
CROSS JOIN LATERAL (
  SELECT o.job_id, o.attempt, o.priority
  FROM generate_series(0, 9) AS p (priority)
  CROSS JOIN LATERAL (
    SELECT job_id, attempt, priority
    FROM outbox
    WHERE queue = u.queue AND priority <= p.priority AND NOT deferred AND NOT solo
      AND (priority, job_id) >= (p.priority::smallint, ($3::uuid[])[(u.n - 1) * 10 + p.priority + 1])
      AND (k.names IS NULL OR kind = ANY (k.names))
    ORDER BY priority, job_id
    LIMIT u.rows_max
  ) o
  LIMIT u.rows_max
) r
