-- $1 jobs, ascending -> where each stands: its home, and what decides whether it may leave it.
-- blocked: an intent without a result that must not be repeated. OFFSET 0 keeps it one look-up per job: the range of
-- the ids holds the effects of every job between them.
SELECT j.id AS job_id, h.home, h.state, h.reason, h.retries, j.max_retries, coalesce(h.expired, false) AS expired,
  EXISTS (SELECT FROM effects e
          WHERE e.job_id = j.id AND e.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
            AND e.state = 'intent' AND e.policy <> 'repeatable' OFFSET 0) AS blocked
FROM jobs j
LEFT JOIN LATERAL (
  SELECT 'outbox' AS home, NULL AS state, NULL AS reason, retries, false AS expired FROM outbox WHERE job_id = j.id
  UNION ALL
  SELECT 'leases', NULL, NULL, retries, false FROM leases WHERE job_id = j.id
  UNION ALL
  SELECT 'dead_letters', 'dead', reason, retries, deadline <= now() FROM dead_letters WHERE job_id = j.id
  UNION ALL
  SELECT 'outcomes', state, reason, retries, false FROM outcomes
  WHERE job_id = j.id AND job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
) AS h ON true
WHERE j.id = ANY($1::uuid[]) AND j.id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
