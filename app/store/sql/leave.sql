-- $1 worker, $2 cause. The process has certainly ended, or will write nothing more.
UPDATE workers SET left_at = clock_timestamp(), left_cause = $2, leader = false WHERE id = $1 AND left_at IS NULL
