"""Retention: a week's partitions are exchanged for new ones that hold only what is still to be kept.

A week is copied while all goes on, and exchanged under a lock that is held for some milliseconds. What changed between
the two is copied again under the lock. A job leaves its home only together with a row in one of the partitioned
tables, so nothing changes while they are locked.

Revision ID: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# What is to be kept of the week that is being exchanged, as it was when its copy began.
RETIRING = """
CREATE TABLE retiring (job_id uuid NOT NULL PRIMARY KEY, home text NOT NULL, attempt int NOT NULL)
"""

MONDAY = """
CREATE FUNCTION outlast_monday(week text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT to_date(week, 'IYYY"w"IW')::timestamp AT TIME ZONE 'UTC'
$$
"""

# What fell into the default partition, because nobody had made this week's, moves to where it belongs.
MAKE_PARTITION = """
CREATE FUNCTION outlast_make_partition(monday timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  parent text; part text; owner text; made int := 0;
  lowest uuid := outlast_uuid_floor(monday); beyond uuid := outlast_uuid_floor(monday + interval '7 days');
BEGIN
  FOREACH parent IN ARRAY ARRAY['jobs', 'outcomes', 'effects', 'attempts'] LOOP
    part := parent || '_' || to_char(monday AT TIME ZONE 'UTC', 'IYYY"w"IW');
    owner := CASE parent WHEN 'jobs' THEN 'id' ELSE 'job_id' END;
    IF to_regclass(part) IS NULL THEN
      EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
      EXECUTE format('WITH strayed AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM strayed',
                     parent || '_default', owner, lowest, owner, beyond, part);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, lowest, beyond);
      made := made + 1;
    END IF;
  END LOOP;
  RETURN made;
END $$
"""

MAKE_PARTITIONS = """
CREATE OR REPLACE FUNCTION outlast_make_partitions(weeks_ahead int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  made int := 0;
  monday timestamptz := date_trunc('week', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
BEGIN
  FOR i IN 0..weeks_ahead LOOP
    made := made + outlast_make_partition(monday + make_interval(weeks => i));
  END LOOP;
  RETURN made;
END $$
"""

# The homes that a job can still leave, in a range of ids.
OPEN_HOMES = """
CREATE FUNCTION outlast_open_homes(lowest uuid, beyond uuid)
RETURNS TABLE (job_id uuid, home text, attempt int, died_at timestamptz) LANGUAGE sql STABLE AS $$
  SELECT o.job_id, 'outbox', o.attempt, NULL::timestamptz FROM outbox o WHERE o.job_id >= lowest AND o.job_id < beyond
  UNION ALL
  SELECT l.job_id, 'leases', l.attempt, NULL FROM leases l WHERE l.job_id >= lowest AND l.job_id < beyond
  UNION ALL
  SELECT d.job_id, 'dead_letters', d.attempt, d.died_at FROM dead_letters d WHERE d.job_id >= lowest AND d.job_id < beyond
$$
"""

# `unresolved`: dead, and an operator may still write to its effects. `expired`: goes, unless it is replayed first.
RETIRE_COPY = """
CREATE FUNCTION outlast_retire_copy(week text, done_from timestamptz, dead_from timestamptz)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  parent text; part text; owner text; kept bigint;
  monday timestamptz := outlast_monday(week);
  lowest uuid := outlast_uuid_floor(monday); beyond uuid := outlast_uuid_floor(monday + interval '7 days');
BEGIN
  DELETE FROM retiring;
  INSERT INTO retiring
  SELECT h.job_id,
    CASE WHEN h.died_at < dead_from THEN 'expired'
         WHEN h.home = 'dead_letters' AND EXISTS (
           SELECT FROM effects e WHERE e.job_id = h.job_id AND e.state = 'intent') THEN 'unresolved'
         ELSE h.home END,
    h.attempt
  FROM outlast_open_homes(lowest, beyond) h
  UNION ALL
  SELECT o.job_id, 'outcomes', o.attempt FROM outcomes o
  WHERE o.job_id >= lowest AND o.job_id < beyond AND o.finished_at >= done_from;
  SELECT count(*) INTO kept FROM retiring WHERE home <> 'expired';
  FOREACH parent IN ARRAY ARRAY['jobs', 'outcomes', 'effects', 'attempts'] LOOP
    part := parent || '_' || week;
    owner := CASE parent WHEN 'jobs' THEN 'id' ELSE 'job_id' END;
    EXECUTE format('DROP TABLE IF EXISTS %I', part || '_kept');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL, CHECK (%I >= %L AND %I < %L))',
                   part || '_kept', parent, owner, lowest, owner, beyond);
    EXECUTE format('INSERT INTO %I SELECT p.* FROM %I p JOIN retiring r ON r.job_id = p.%I WHERE r.home <> ''expired''',
                   part || '_kept', part, owner);
  END LOOP;
  RETURN kept;
END $$
"""

RETIRE_SWAP = """
CREATE FUNCTION outlast_retire_swap(week text, dead_from timestamptz, lock_ms int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  parent text; part text; owner text; kept bigint; expired uuid[]; changed uuid[];
  monday timestamptz := outlast_monday(week);
  lowest uuid := outlast_uuid_floor(monday); beyond uuid := outlast_uuid_floor(monday + interval '7 days');
BEGIN
  PERFORM set_config('lock_timeout', lock_ms || 'ms', true);
  LOCK TABLE jobs, outcomes, effects, attempts IN ACCESS EXCLUSIVE MODE;
  WITH gone AS (
    DELETE FROM dead_letters d WHERE d.job_id >= lowest AND d.job_id < beyond AND d.died_at < dead_from RETURNING d.job_id
  )
  SELECT coalesce(array_agg(job_id), '{}') INTO expired FROM gone;
  SELECT coalesce(array_agg(c.job_id), '{}') INTO changed FROM (
    SELECT coalesce(h.job_id, r.job_id) AS job_id
    FROM outlast_open_homes(lowest, beyond) h FULL JOIN retiring r ON r.job_id = h.job_id
    WHERE CASE WHEN r.job_id IS NULL THEN true
               WHEN r.home = 'outcomes' THEN false
               WHEN r.home = 'expired' THEN r.job_id <> ALL (expired)
               ELSE h.job_id IS NULL OR h.home <> r.home OR h.attempt <> r.attempt OR h.home = 'leases' END) c;
  FOREACH parent IN ARRAY ARRAY['jobs', 'outcomes', 'effects', 'attempts'] LOOP
    part := parent || '_' || week;
    owner := CASE parent WHEN 'jobs' THEN 'id' ELSE 'job_id' END;
    EXECUTE format('DELETE FROM %I WHERE %I = ANY ($1)', part || '_kept', owner) USING changed;
    EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE %I = ANY ($1)', part || '_kept', part, owner) USING changed;
  END LOOP;
  EXECUTE format('SELECT count(*) FROM %I', 'jobs_' || week || '_kept') INTO kept;
  FOREACH parent IN ARRAY ARRAY['jobs', 'outcomes', 'effects', 'attempts'] LOOP
    part := parent || '_' || week;
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, part);
    EXECUTE format('ALTER TABLE %I RENAME TO %I', part, part || '_retired');
    IF kept > 0 THEN
      EXECUTE format('ALTER TABLE %I RENAME TO %I', part || '_kept', part);
      EXECUTE format('COMMENT ON TABLE %I IS %L', part, 'kept ' || clock_timestamp());
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, lowest, beyond);
    ELSE
      EXECUTE format('DROP TABLE %I', part || '_kept');
    END IF;
  END LOOP;
  RETURN kept;
END $$
"""

# One table a call: each is a transaction of its own, and frees its files by itself.
DROP_RETIRED = """
CREATE FUNCTION outlast_drop_retired() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  part text;
BEGIN
  SELECT c.relname INTO part FROM pg_class c
  WHERE c.relkind = 'r' AND c.relnamespace = (SELECT p.relnamespace FROM pg_class p WHERE p.oid = 'jobs'::regclass)
    AND c.relname ~ '^(jobs|outcomes|effects|attempts)_[0-9]{4}w[0-9]{2}_retired$'
  ORDER BY c.relname LIMIT 1;
  IF part IS NOT NULL THEN
    EXECUTE format('DROP TABLE %I', part);
  END IF;
  RETURN part;
END $$
"""

STATEMENTS = (
    *(RETIRING, MONDAY, MAKE_PARTITION, MAKE_PARTITIONS, OPEN_HOMES),
    *(RETIRE_COPY, RETIRE_SWAP, DROP_RETIRED),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("revisions are forward-only")
