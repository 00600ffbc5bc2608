-- The jobs with the sorted ids $1 as they are now, newest first; with input and result when $2.
-- One snapshot: a job that moves meanwhile is seen in one home. OFFSET 0 keeps it one look-up per job and home.
SELECT j.id, j.kind, j.queue, j.priority, j.max_retries, j.timeout_seconds, j.metadata, j.created_at, j.deadline,
       h.state, h.reason, h.attempt, h.retries, h.crashes, h.releases, h.error, h.progress, h.fingerprint,
       h.due_at, h.started_at, h.finished_at, CASE WHEN $2::boolean THEN j.input END AS input, h.result
FROM jobs j
LEFT JOIN LATERAL (
  SELECT CASE WHEN NOT o.deferred OR o.due_at <= now() THEN 'queued'
              WHEN o.attempt = 0 THEN 'scheduled' ELSE 'retrying' END AS state,
         NULL AS reason, o.attempt, o.retries, o.crashes, o.releases,
         CASE WHEN o.deferred AND o.due_at > now() AND o.attempt > 0 THEN (
           SELECT a.error FROM attempts a
           WHERE a.job_id = o.job_id AND a.job_id BETWEEN ($1::uuid[])[1] AND $1[cardinality($1)]
           ORDER BY a.attempt DESC LIMIT 1
         ) END AS error,
         NULL::json AS progress, NULL AS fingerprint, o.due_at, NULL::timestamptz AS started_at,
         NULL::timestamptz AS finished_at, NULL::json AS result
  FROM outbox o
  WHERE o.job_id = j.id
  UNION ALL
  SELECT CASE WHEN l.started_at IS NULL THEN 'leased' ELSE 'running' END,
         NULL, l.attempt, l.retries, l.crashes, l.releases, NULL, l.progress, NULL, NULL, l.started_at, NULL, NULL
  FROM leases l
  WHERE l.job_id = j.id
  UNION ALL
  SELECT 'dead', d.reason, d.attempt, d.retries, d.crashes, d.releases, d.error, NULL, d.fingerprint,
         NULL, d.started_at, d.died_at, NULL
  FROM dead_letters d
  WHERE d.job_id = j.id
  UNION ALL
  SELECT c.state, c.reason, c.attempt, c.retries, c.crashes, c.releases, NULL, NULL, NULL,
         NULL, c.started_at, c.finished_at, CASE WHEN $2 THEN c.result END
  FROM outcomes c
  WHERE c.job_id = j.id AND c.job_id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
  OFFSET 0
) h ON true
WHERE j.id = ANY($1::uuid[]) AND j.id BETWEEN ($1::uuid[])[1] AND ($1::uuid[])[cardinality($1::uuid[])]
ORDER BY j.id DESC
