-- $1 jobs, ascending -> what running them again would touch, by kind and reason.
-- reused: on record. repeated: an intent that may be called again. unknown: an intent that blocks its job.
SELECT d.kind, d.reason, count(*) AS jobs, sum(e.reused)::bigint AS reused, sum(e.repeated)::bigint AS repeated,
  sum(e.unknown)::bigint AS unknown, count(*) FILTER (WHERE e.unknown > 0) AS blocked
FROM dead_letters d
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE state = 'recorded') AS reused,
    count(*) FILTER (WHERE state = 'intent' AND policy = 'repeatable') AS repeated,
    count(*) FILTER (WHERE state = 'intent' AND policy <> 'repeatable') AS unknown
  FROM effects
  WHERE job_id = d.job_id AND job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
) AS e
WHERE d.job_id = ANY($1::uuid[])
GROUP BY d.kind, d.reason
ORDER BY d.kind, d.reason
