-- How many leases of the queue $1 there are; counts to $2.
SELECT count(*) FROM (SELECT FROM leases WHERE queue = $1 LIMIT $2) counted
