-- The scan's session: the queue's index is right however empty the statistics say the outbox is.
SELECT set_config(name, 'off', false)
FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit']) AS name
