-- $1 replay id -> how many jobs it has moved
SELECT count(*) FROM replay_items WHERE replay_id = $1
