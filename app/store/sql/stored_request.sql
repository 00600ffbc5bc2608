-- What the job $1 was given when it was submitted.
SELECT kind, input, queue, priority, run_at, deadline, timeout_seconds, max_retries, metadata, created_at FROM jobs WHERE id = $1
