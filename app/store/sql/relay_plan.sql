-- $1 milliseconds. The leader's session: the queue's index is right however empty the statistics say the outbox is; and
-- a leader that is frozen is idle, so the server ends its session and another may lead.
SELECT set_config('idle_session_timeout', $1::text, false), set_config(name, 'off', false)
FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit']) AS name
