-- Keeps the leader's session from being idle while there is nothing to scan.
SELECT true
