-- $1 replay id, $2 jobs -> those of them that this replay has moved before
SELECT job_id FROM replay_items WHERE replay_id = $1 AND job_id = ANY($2::uuid[])
