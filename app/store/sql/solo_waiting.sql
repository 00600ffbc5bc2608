-- $1 a worker of mine, $2 at most -> jobs before their last start, of the queues and kinds that worker serves
SELECT o.job_id
FROM outbox o JOIN workers w ON w.id = $1
WHERE o.solo AND o.due_at <= now() AND (o.deadline IS NULL OR o.deadline > now())
  AND o.queue = ANY(w.queues) AND o.kind = ANY(w.kinds)
ORDER BY o.job_id LIMIT $2
