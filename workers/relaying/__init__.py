"""The leader's work: from the outbox to the streams, and what the broker lost."""
