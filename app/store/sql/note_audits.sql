-- $1 invariants, $2 how many findings of each: what the last look found.
INSERT INTO audits (invariant, findings)
SELECT invariant, findings FROM unnest($1::text[], $2::int[]) AS x (invariant, findings) ORDER BY invariant
ON CONFLICT (invariant) DO UPDATE SET findings = excluded.findings, taken_at = clock_timestamp()
