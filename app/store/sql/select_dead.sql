-- Dead letters by id, oldest job first. $1 kind, $2 reason, $3 queue, $4 fingerprint, $5 and $6 died from and before,
-- $7 behind this id, $8 rows
SELECT job_id FROM dead_letters
WHERE ($1::text IS NULL OR kind = $1) AND ($2::text IS NULL OR reason = $2) AND ($3::text IS NULL OR queue = $3)
  AND ($4::text IS NULL OR fingerprint = $4)
  AND ($5::timestamptz IS NULL OR died_at >= $5) AND ($6::timestamptz IS NULL OR died_at < $6)
  AND ($7::uuid IS NULL OR job_id > $7)
ORDER BY job_id
LIMIT $8
