-- What the leader's last look at the invariants found.
SELECT invariant, findings, extract(epoch FROM taken_at)::float8 AS taken_at FROM audits ORDER BY invariant
