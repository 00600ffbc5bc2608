-- -> the name of a partition that was exchanged and is dropped now; null when there is none.
SELECT outlast_drop_retired()
