-- New jobs, one by one from the arrays: idempotency key digests $1 and request digests $2 (null without a key), tenants $3,
-- kinds $4, queues $5, priorities $6, inputs $7, metadata $8, max_retries $9, timeout_seconds $10, run_at $11 or
-- delay_seconds $12, deadlines $13.
-- A key that is taken, by another job or by an earlier item, gives no row: who it belongs to is read by a later statement,
-- because the snapshot of this one cannot see a winner it has waited for. Keys are taken in order: no deadlocks.
WITH item AS MATERIALIZED (
  SELECT x.*, outlast_uuid_v7() AS id, coalesce(x.run_at, now() + make_interval(secs => x.delay_seconds)) AS starts_at
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::json[], $8::json[],
              $9::smallint[], $10::float8[], $11::timestamptz[], $12::float8[], $13::timestamptz[]) WITH ORDINALITY
       AS x (key, request, tenant, kind, queue, priority, input, metadata,
             max_retries, timeout_seconds, run_at, delay_seconds, deadline, place)
), taken AS (
  INSERT INTO idempotency_keys (digest, request_digest, job_id)
  SELECT key, request, id FROM item WHERE key IS NOT NULL ORDER BY key, place
  ON CONFLICT (digest) DO NOTHING
  RETURNING job_id
), fresh AS MATERIALIZED (
  SELECT item.*, coalesce(starts_at > now(), false) AS deferred
  FROM item
  WHERE key IS NULL OR id IN (SELECT job_id FROM taken)
), job AS (
  INSERT INTO jobs (id, tenant, kind, queue, priority, input, metadata, max_retries, timeout_seconds, run_at, deadline)
  SELECT id, tenant, kind, queue, priority, input, metadata, max_retries, timeout_seconds, starts_at, deadline
  FROM fresh ORDER BY id
), waiting AS (
  INSERT INTO outbox (job_id, tenant, kind, queue, priority, due_at, deferred, deadline, timeout_seconds, max_retries)
  SELECT id, tenant, kind, queue, priority, greatest(starts_at, now()), deferred, deadline, timeout_seconds, max_retries
  FROM fresh ORDER BY id
)
SELECT place, id, now() AS created_at, greatest(starts_at, now()) AS due_at, deferred FROM fresh ORDER BY place
