-- Queues that an operator has named: those that workers serve or have served, and those that kinds go to unasked.
SELECT unnest(queues) AS queue FROM workers WHERE role = 'worker'
UNION
SELECT defaults->>'queue' FROM kinds WHERE defaults->>'queue' IS NOT NULL
