-- The jobs that the idempotency keys with the digests $1 belong to.
SELECT digest, request_digest, job_id FROM idempotency_keys WHERE digest = ANY($1::uuid[]) ORDER BY digest
