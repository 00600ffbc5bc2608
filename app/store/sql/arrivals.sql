-- $1 since -> live worker children that registered since, whether a relay leads, whether their kinds are all published
SELECT count(*) FILTER (WHERE role = 'worker') AS workers,
       coalesce(bool_or(leader) FILTER (WHERE role = 'relay'), false) AS led,
       NOT EXISTS (
         SELECT FROM workers w, unnest(w.kinds) k (name)
         WHERE w.left_at IS NULL AND w.started_at >= $1
           AND NOT EXISTS (SELECT FROM kinds WHERE kinds.name = k.name)
       ) AS kinds_published
FROM workers
WHERE left_at IS NULL AND started_at >= $1
