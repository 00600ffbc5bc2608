-- What operators did to the job $1: the newest $2 actions.
SELECT at, actor, action, reason
FROM operator_actions
WHERE job_id = $1
ORDER BY id DESC
LIMIT $2
