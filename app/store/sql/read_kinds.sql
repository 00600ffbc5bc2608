-- Every kind that was ever published.
SELECT name, version, input_schema, output_schema, defaults FROM kinds ORDER BY name
