-- Leases of each queue, out of no more than $1.
SELECT queue, count(*) AS running FROM (SELECT queue FROM leases LIMIT $1) s GROUP BY queue ORDER BY queue
