-- $1 id, $2 attempt, $3 key -> 1 when my intent was taken back: the outside call certainly did not happen
WITH held AS MATERIALIZED (
  SELECT l.job_id, l.attempt FROM leases l WHERE l.job_id = $1 AND l.attempt = $2 FOR SHARE OF l
)
UPDATE effects e SET state = 'cleared' FROM held h
WHERE e.job_id = $1 AND e.key = $3 AND e.attempt = h.attempt AND e.state = 'intent'
RETURNING 1
