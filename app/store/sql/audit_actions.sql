-- What an operator or a caller did to a job is on record with who did it, and what is on record was done.
-- The record of actions outlasts the jobs. $1: most findings, $2: least job.
SELECT job_id, detail
FROM (SELECT r.job_id, 'replayed as ' || r.replay_id || ' by nobody on record' AS detail
      FROM replay_items r
      WHERE r.job_id >= $2 AND NOT EXISTS (
        SELECT FROM operator_actions a
        WHERE a.job_id = r.job_id AND a.action = 'replay' AND a.details ->> 'replay_id' = r.replay_id)
      UNION ALL
      SELECT a.job_id, 'on record as replayed as ' || (a.details ->> 'replay_id') || ', and was not'
      FROM operator_actions a
      WHERE a.job_id >= $2 AND a.action = 'replay' AND EXISTS (SELECT FROM jobs j WHERE j.id = a.job_id)
        AND NOT EXISTS (
        SELECT FROM replay_items r WHERE r.replay_id = a.details ->> 'replay_id' AND r.job_id = a.job_id)
      UNION ALL
      SELECT o.job_id, 'cancelled by nobody on record'
      FROM outcomes o
      WHERE o.job_id >= $2 AND o.state = 'cancelled' AND NOT EXISTS (
        SELECT FROM operator_actions a WHERE a.job_id = o.job_id AND a.action IN ('cancel', 'discard'))
      UNION ALL
      SELECT a.job_id, 'on record as cancelled, and is not'
      FROM operator_actions a
      WHERE a.job_id >= $2 AND a.action IN ('cancel', 'discard')
        AND EXISTS (SELECT FROM jobs j WHERE j.id = a.job_id)
        AND NOT EXISTS (
        SELECT FROM outcomes o WHERE o.job_id = a.job_id AND o.state = 'cancelled')) AS told
ORDER BY job_id
LIMIT $1
