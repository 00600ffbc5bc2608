-- Where the waiting job $1 stands: whether its last start waits for a process of its own, and how many due jobs
-- of its queue go first; counts to $2.
SELECT o.solo,
       (SELECT count(*) FROM (
          SELECT FROM outbox a
          WHERE a.queue = o.queue AND NOT a.deferred AND (a.priority, a.job_id) < (o.priority, o.job_id)
          LIMIT $2) counted) AS ahead
FROM outbox o
WHERE o.job_id = $1
