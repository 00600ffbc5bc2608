-- $1 grace in seconds -> every process that has not left and has been heard within the grace
SELECT id, role, queues, kinds, slots, transport, broker_ok, leader, draining
FROM workers
WHERE left_at IS NULL AND heartbeat_at > clock_timestamp() - make_interval(secs => $1)
