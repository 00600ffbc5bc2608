"""Language-model providers of `ticket.triage`, behind one protocol."""
