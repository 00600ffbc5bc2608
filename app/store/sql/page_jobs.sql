-- Newest jobs in any state. $1 id before which to begin, $2 least id, $3 kind, $4 queue, $5 rows, $6 ids to look at.
-- The subquery streams: the outer limit stops it, and its own limit ends a sparse search (that row says so).
SELECT id, looked, wanted
FROM (
  SELECT id, row_number() OVER (ORDER BY id DESC) AS looked,
         ($3::text IS NULL OR kind = $3) AND ($4::text IS NULL OR queue = $4) AS wanted
  FROM jobs
  WHERE id < $1 AND id >= $2
  ORDER BY id DESC
  LIMIT $6
) page
WHERE wanted OR looked = $6
ORDER BY id DESC
LIMIT $5
