-- Kinds as their workers know them, one by one from the arrays: names $1, versions $2, input schemas $3, output schemas $4,
-- defaults $5. A kind that says nothing new is not written, so that a restart of many workers writes nothing.
INSERT INTO kinds AS k (name, version, input_schema, output_schema, defaults)
SELECT x.name, x.version, x.input_schema, x.output_schema, x.defaults
FROM unnest($1::text[], $2::text[], $3::json[], $4::json[], $5::json[]) AS x (name, version, input_schema, output_schema, defaults)
ORDER BY x.name
ON CONFLICT (name) DO UPDATE
SET version = excluded.version, input_schema = excluded.input_schema, output_schema = excluded.output_schema,
    defaults = excluded.defaults, published_at = clock_timestamp()
WHERE (k.version, k.input_schema::text, k.output_schema::text, k.defaults::text)
      IS DISTINCT FROM (excluded.version, excluded.input_schema::text, excluded.output_schema::text, excluded.defaults::text)
