-- $1 days that dead letters are kept, $2 days of warning -> what a check-up reads of the server
SELECT current_setting('server_version_num')::int AS server_version,
  (SELECT string_agg(version_num, ', ') FROM alembic_version) AS revision,
  (SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent = 'jobs'::regclass
     AND c.relname > 'jobs_' || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'IYYY"w"IW')
     AND c.relname <> 'jobs_default') AS weeks_ahead,
  EXISTS (SELECT FROM jobs_default) AS default_used,
  (SELECT count(*) FROM (
     SELECT FROM dead_letters WHERE died_at < now() - make_interval(days => $1::int - $2::int) LIMIT 10000) AS old) AS dead_leaving
