-- -> the process id of the server's side of this session
SELECT pg_backend_pid()
