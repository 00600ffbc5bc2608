-- $1 done before then -> the weeks all of whose jobs are older, oldest first, but for those looked through within a week.
SELECT right(c.relname, 7) AS week
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'jobs'::regclass AND c.relname ~ '^jobs_[0-9]{4}w[0-9]{2}$'
  AND outlast_monday(right(c.relname, 7)) + interval '7 days' <= $1
  AND coalesce(substring(obj_description(c.oid, 'pg_class') FROM 'kept (.*)')::timestamptz, '-infinity')
      < now() - interval '7 days'
ORDER BY c.relname
