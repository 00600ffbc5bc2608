-- $1 id, $2 attempt, $3 progress (JSON text)
UPDATE leases SET progress = $3::json WHERE job_id = $1 AND attempt = $2
