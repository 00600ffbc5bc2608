-- $1 after this digest, $2 so many keys, $3 the week that was copied
-- -> the last digest looked at, null at the end, and how many of the keys are gone.
-- Keys go before their jobs: a key without its job would be a finding.
WITH page AS MATERIALIZED (
  SELECT digest, job_id FROM idempotency_keys WHERE digest > $1 ORDER BY digest LIMIT $2
), gone AS (
  DELETE FROM idempotency_keys k USING page p
  WHERE k.digest = p.digest AND p.job_id >= outlast_uuid_floor(outlast_monday($3))
    AND p.job_id < outlast_uuid_floor(outlast_monday($3) + interval '7 days')
    AND NOT EXISTS (SELECT FROM retiring r WHERE r.job_id = p.job_id AND r.home <> 'expired')
  RETURNING k.digest
)
SELECT (SELECT digest FROM page ORDER BY digest DESC LIMIT 1) AS last, (SELECT count(*) FROM gone) AS gone
