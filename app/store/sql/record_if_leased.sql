-- $1 ids, ascending, $2 attempts, $3 keys, $4 results (JSON text) -> which of them, counted from 1, are mine and on record
WITH want AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[]) WITH ORDINALITY
    AS w (job_id, attempt, key, result, nth)
), held AS MATERIALIZED (
  SELECT l.job_id, l.attempt FROM leases l
  WHERE (l.job_id, l.attempt) IN (SELECT job_id, attempt FROM want)
  ORDER BY l.job_id FOR SHARE OF l
)
UPDATE effects e
SET state = 'recorded', result = w.result::json, recorded_at = clock_timestamp()
FROM want w JOIN held h ON h.job_id = w.job_id AND h.attempt = w.attempt
WHERE e.job_id = w.job_id AND e.key = w.key AND e.attempt = h.attempt AND e.state IN ('intent', 'recorded')
  AND e.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
RETURNING w.nth
