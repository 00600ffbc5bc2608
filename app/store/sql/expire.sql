-- $1 at most so many
-- -> the jobs whose deadline passed while they waited
WITH picked AS MATERIALIZED (
  SELECT job_id FROM outbox WHERE deadline <= now() ORDER BY deadline, job_id LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM outbox o USING picked p WHERE o.job_id = p.job_id RETURNING o.*
)
INSERT INTO dead_letters (job_id, tenant, kind, queue, priority, reason, error, fingerprint, deadline,
  timeout_seconds, attempt, retries, max_retries, crashes, releases)
SELECT job_id, tenant, kind, queue, priority, 'expired',
  json_build_object('type', 'Expired', 'message', 'the deadline passed while the job waited',
    'fingerprint', substr(md5('Expired' || kind), 1, 16)),
  substr(md5('Expired' || kind), 1, 16), deadline,
  timeout_seconds, attempt, retries, max_retries, crashes, releases
FROM gone
RETURNING job_id
