-- Dead letters of each reason, out of the newest $1.
SELECT reason, count(*) AS dead
FROM (SELECT reason FROM dead_letters ORDER BY died_at DESC, job_id DESC LIMIT $1) s
GROUP BY reason
ORDER BY reason
