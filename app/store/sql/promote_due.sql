-- $1 at most so many -> the queues of the deferred rows whose time has come, one for each row
WITH picked AS MATERIALIZED (
  SELECT job_id FROM outbox WHERE deferred AND due_at <= now() ORDER BY due_at, job_id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE outbox o SET deferred = false FROM picked p WHERE o.job_id = p.job_id RETURNING o.queue
