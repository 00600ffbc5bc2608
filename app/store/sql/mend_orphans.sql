-- $1 job, $2 reason, $3 actor -> what was done.
-- Takes away what belongs to no job, and keeps it in the action. A key without its job would answer a caller with a
-- job that does not exist; without it, the caller's next submit is taken.
WITH made AS (
  DELETE FROM effects e
  WHERE e.job_id = $1 AND NOT EXISTS (SELECT FROM jobs WHERE id = $1)
  RETURNING 'effect' AS what, to_json(e) AS kept
), tried AS (
  DELETE FROM attempts a
  WHERE a.job_id = $1 AND NOT EXISTS (SELECT FROM jobs WHERE id = $1)
  RETURNING 'attempt' AS what, to_json(a) AS kept
), named AS (
  DELETE FROM idempotency_keys k
  WHERE k.job_id = $1 AND NOT EXISTS (SELECT FROM jobs WHERE id = $1)
  RETURNING 'idempotency key' AS what, to_json(k) AS kept
)
INSERT INTO operator_actions (actor, action, job_id, reason, details)
SELECT $3, 'repair', $1, $2, json_build_object('done', 'an ' || what || ' of no job taken out', 'row', kept)
FROM (SELECT * FROM made UNION ALL SELECT * FROM tried UNION ALL SELECT * FROM named) AS taken
RETURNING details ->> 'done' AS done
