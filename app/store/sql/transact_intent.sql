-- $1 id, $2 attempt -> worker_id and tenant while the lease is mine; holds it until the transaction ends
SELECT worker_id, tenant FROM leases WHERE job_id = $1 AND attempt = $2 FOR SHARE
