-- $1 week, $2 done before then and $3 dead before then -> how many of its jobs are to be kept; they are copied.
SELECT outlast_retire_copy($1, $2, $3)
