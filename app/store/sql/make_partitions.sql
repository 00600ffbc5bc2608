-- $1 weeks ahead -> how many partitions were made
SELECT outlast_make_partitions($1)
