-- $1 job or null, $2 reason, $3 actor, $4 what was done: the broker's part of a repair, which is no row of ours.
INSERT INTO operator_actions (actor, action, job_id, reason, details)
VALUES ($3, 'repair', $1, $2, json_build_object('done', $4::text))
RETURNING details ->> 'done' AS done
