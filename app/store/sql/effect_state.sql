-- $1 job, $2 key -> the state of the effect
SELECT state FROM effects WHERE job_id = $1 AND key = $2
