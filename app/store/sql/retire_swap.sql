-- $1 week, $2 dead before then, $3 how long a lock may be waited for, in ms -> how many of its jobs are kept.
SELECT outlast_retire_swap($1, $2, $3)
