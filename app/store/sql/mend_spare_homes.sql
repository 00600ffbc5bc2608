-- $1 job, $2 reason, $3 actor -> what was done.
-- Takes rows away that can never matter again, and keeps them in the action: those beside an outcome, which is final,
-- and those of no job, which has no input to run with. A lease is left to its holder.
WITH waiting AS (
  DELETE FROM outbox o
  WHERE o.job_id = $1
    AND (EXISTS (SELECT FROM outcomes WHERE job_id = $1) OR NOT EXISTS (SELECT FROM jobs WHERE id = $1))
  RETURNING o.tenant, 'outbox' AS home, to_json(o) AS kept
), dead AS (
  DELETE FROM dead_letters d
  WHERE d.job_id = $1
    AND (EXISTS (SELECT FROM outcomes WHERE job_id = $1) OR NOT EXISTS (SELECT FROM jobs WHERE id = $1))
  RETURNING d.tenant, 'dead_letters' AS home, to_json(d) AS kept
), ended AS (
  DELETE FROM outcomes c
  WHERE c.job_id = $1 AND NOT EXISTS (SELECT FROM jobs WHERE id = $1)
  RETURNING c.tenant, 'outcomes' AS home, to_json(c) AS kept
)
INSERT INTO operator_actions (tenant, actor, action, job_id, reason, details)
SELECT tenant, $3, 'repair', $1, $2, json_build_object('done', 'taken out of ' || home, 'row', kept)
FROM (SELECT * FROM waiting UNION ALL SELECT * FROM dead UNION ALL SELECT * FROM ended) AS taken
RETURNING details ->> 'done' AS done
