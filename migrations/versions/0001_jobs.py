"""The tables of a job: written once, homes, effects, attempts, workers, audit.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PARTITIONED = ("jobs", "outcomes", "effects", "attempts")
WEEKS_AHEAD = 2

FUNCTIONS = (
    # The least UUIDv7 of an instant: a bound for ranges of ids.
    """
    CREATE FUNCTION outlast_uuid_floor(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
      SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
    $$
    """,
    # UUIDv7 (RFC 9562, method 3: sub-millisecond bits in rand_a) for servers before 18.
    """
    CREATE FUNCTION outlast_uuid_v7_sql() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
      SELECT (lpad(to_hex(t.us / 1000), 12, '0') || '7' || lpad(to_hex((t.us % 1000) * 4096 / 1000), 3, '0')
              || substr('89ab', 1 + (get_byte(r.b, 0) & 3), 1) || substr(encode(r.b, 'hex'), 18, 15))::uuid
      FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) t,
           (SELECT uuid_send(gen_random_uuid()) AS b) r
    $$
    """,
    """
    DO $do$
    BEGIN
      IF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE 'CREATE FUNCTION outlast_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS ''SELECT uuidv7()''';
      ELSE
        EXECUTE 'CREATE FUNCTION outlast_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS ''SELECT outlast_uuid_v7_sql()''';
      END IF;
    END $do$
    """,
    # Attaching takes a lock that readers and writers do not notice; creating "PARTITION OF" would not.
    """
    CREATE FUNCTION outlast_make_partitions(weeks_ahead int) RETURNS int LANGUAGE plpgsql AS $$
    DECLARE
      parent text; week timestamptz; part text; made int := 0;
      monday timestamptz := date_trunc('week', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    BEGIN
      FOREACH parent IN ARRAY ARRAY['jobs', 'outcomes', 'effects', 'attempts'] LOOP
        FOR i IN 0..weeks_ahead LOOP
          week := monday + make_interval(weeks => i);
          part := parent || '_' || to_char(week AT TIME ZONE 'UTC', 'IYYY"w"IW');
          IF to_regclass(part) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           parent, part, outlast_uuid_floor(week), outlast_uuid_floor(week + interval '7 days'));
            made := made + 1;
          END IF;
        END LOOP;
      END LOOP;
      RETURN made;
    END $$
    """,
    """
    CREATE FUNCTION outlast_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
    END $$
    """,
)

TABLES = (
    """
    CREATE TABLE jobs (
      id uuid NOT NULL PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'default',
      kind text NOT NULL,
      queue text NOT NULL,
      priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
      input json NOT NULL,
      metadata json,
      max_retries smallint NOT NULL CHECK (max_retries BETWEEN 0 AND 5),
      timeout_seconds double precision NOT NULL CHECK (timeout_seconds > 0),
      run_at timestamptz,
      deadline timestamptz,
      created_at timestamptz NOT NULL DEFAULT now()
    ) PARTITION BY RANGE (id)
    """,
    """
    CREATE TABLE outcomes (
      job_id uuid NOT NULL PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'default',
      kind text NOT NULL,
      queue text NOT NULL,
      state text NOT NULL CHECK (state IN ('done', 'cancelled')),
      reason text,
      result json,
      worker_id uuid,
      attempt int NOT NULL,
      retries smallint NOT NULL,
      crashes smallint NOT NULL,
      releases smallint NOT NULL,
      started_at timestamptz,
      finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      CHECK ((state = 'done') = (result IS NOT NULL))
    ) PARTITION BY RANGE (job_id)
    """,
    "CREATE INDEX outcomes_cancelled ON outcomes (job_id) WHERE state = 'cancelled'",
    """
    CREATE TABLE effects (
      job_id uuid NOT NULL,
      key text NOT NULL,
      tenant text NOT NULL DEFAULT 'default',
      attempt int NOT NULL,
      worker_id uuid NOT NULL,
      policy text NOT NULL CHECK (policy IN ('repeatable', 'at_most_once', 'reconcile')),
      args_digest bytea NOT NULL,
      state text NOT NULL CHECK (state IN ('intent', 'recorded', 'cleared')),
      result json,
      calls int NOT NULL DEFAULT 1,
      intent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      recorded_at timestamptz,
      PRIMARY KEY (job_id, key),
      CHECK ((state = 'recorded') = (result IS NOT NULL))
    ) PARTITION BY RANGE (job_id)
    """,
    """
    CREATE TABLE attempts (
      job_id uuid NOT NULL,
      attempt int NOT NULL,
      tenant text NOT NULL DEFAULT 'default',
      worker_id uuid,
      started_at timestamptz,
      ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      "end" text NOT NULL CHECK ("end" IN ('done', 'failed', 'timed_out', 'lost', 'released', 'cancelled', 'fenced')),
      cause text,
      error json,
      PRIMARY KEY (job_id, attempt)
    ) PARTITION BY RANGE (job_id)
    """,
    """
    CREATE TABLE outbox (
      job_id uuid NOT NULL PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'default',
      kind text NOT NULL,
      queue text NOT NULL,
      priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
      due_at timestamptz NOT NULL DEFAULT now(),
      deferred boolean NOT NULL DEFAULT false,
      solo boolean NOT NULL DEFAULT false,
      deadline timestamptz,
      timeout_seconds double precision NOT NULL,
      attempt int NOT NULL DEFAULT 0,
      retries smallint NOT NULL DEFAULT 0,
      max_retries smallint NOT NULL,
      crashes smallint NOT NULL DEFAULT 0,
      releases smallint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 80)
    """,
    "CREATE INDEX outbox_ready ON outbox (queue, priority, job_id) WHERE NOT deferred",
    "CREATE INDEX outbox_deferred ON outbox (due_at, job_id) WHERE deferred",
    # Both are empty but for the few rows they are for, and cost the others nothing.
    "CREATE INDEX outbox_solo ON outbox (job_id) WHERE solo",
    "CREATE INDEX outbox_deadline ON outbox (deadline, job_id) WHERE deadline IS NOT NULL",
    """
    CREATE TABLE leases (
      job_id uuid NOT NULL PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'default',
      kind text NOT NULL,
      queue text NOT NULL,
      priority smallint NOT NULL,
      worker_id uuid NOT NULL,
      started_at timestamptz,
      run_until timestamptz NOT NULL,
      deadline timestamptz,
      timeout_seconds double precision NOT NULL,
      attempt int NOT NULL CHECK (attempt > 0),
      retries smallint NOT NULL,
      max_retries smallint NOT NULL,
      crashes smallint NOT NULL,
      releases smallint NOT NULL,
      progress json
    ) WITH (fillfactor = 80)
    """,
    """
    CREATE TABLE dead_letters (
      job_id uuid NOT NULL PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'default',
      kind text NOT NULL,
      queue text NOT NULL,
      priority smallint NOT NULL,
      reason text NOT NULL CHECK (reason IN ('permanent_error', 'retries_exhausted', 'crashes_exhausted', 'invalid_input',
        'invalid_output', 'timed_out', 'expired', 'effect_unknown', 'effect_mismatch', 'unknown_kind', 'result_too_large')),
      error json NOT NULL,
      fingerprint text NOT NULL,
      worker_id uuid,
      deadline timestamptz,
      timeout_seconds double precision NOT NULL,
      attempt int NOT NULL,
      retries smallint NOT NULL,
      max_retries smallint NOT NULL,
      crashes smallint NOT NULL,
      releases smallint NOT NULL,
      started_at timestamptz,
      died_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX dead_letters_died ON dead_letters (died_at, job_id)",
    "CREATE INDEX dead_letters_kind ON dead_letters (kind, job_id)",
    "CREATE INDEX dead_letters_fingerprint ON dead_letters (fingerprint, died_at)",
    """
    CREATE TABLE idempotency_keys (
      digest uuid NOT NULL PRIMARY KEY,
      request_digest uuid NOT NULL,
      job_id uuid NOT NULL
    )
    """,
    """
    CREATE TABLE kinds (
      name text NOT NULL PRIMARY KEY,
      version text NOT NULL,
      input_schema json NOT NULL,
      output_schema json NOT NULL,
      defaults json NOT NULL,
      published_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    # One row per process incarnation, never reused. `lock_key` is the key of its session advisory lock.
    """
    CREATE TABLE workers (
      id uuid NOT NULL PRIMARY KEY,
      role text NOT NULL CHECK (role IN ('worker', 'solo', 'relay')),
      lock_key int NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
      host text NOT NULL,
      pid int NOT NULL,
      queues text[] NOT NULL,
      kinds text[] NOT NULL,
      slots int NOT NULL,
      transport text NOT NULL,
      broker_ok boolean,
      leader boolean NOT NULL DEFAULT false,
      draining boolean NOT NULL DEFAULT false,
      started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      left_at timestamptz,
      left_cause text,
      settled_at timestamptz
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE operator_actions (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'default',
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      actor text NOT NULL,
      action text NOT NULL,
      job_id uuid,
      reason text,
      details json
    )
    """,
    "CREATE INDEX operator_actions_job ON operator_actions (job_id)",
    """
    CREATE TRIGGER operator_actions_append_only BEFORE UPDATE OR DELETE ON operator_actions
      FOR EACH ROW EXECUTE FUNCTION outlast_append_only()
    """,
    "CREATE TABLE replay_items (replay_id text NOT NULL, job_id uuid NOT NULL, PRIMARY KEY (replay_id, job_id))",
)

# Small tables that live by insert and delete: vacuum early, without pauses.
CHURNING = ("outbox", "leases", "workers")
CHURN_SETTINGS = (
    "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, "
    "autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 2000"
)


def upgrade() -> None:
    for statement in (*FUNCTIONS, *TABLES):
        op.execute(statement)
    for table in CHURNING:
        op.execute(f"ALTER TABLE {table} SET ({CHURN_SETTINGS})")
    for table in PARTITIONED:
        op.execute(f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT")
    op.execute(f"SELECT outlast_make_partitions({WEEKS_AHEAD})")


def downgrade() -> None:
    raise RuntimeError("revisions are forward-only")
