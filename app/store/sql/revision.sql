-- -> the revision the schema is at; null when it has none
SELECT string_agg(version_num, ', ') FROM alembic_version
