"""Between an attempt and the code of handler authors: contexts, ledgers, calls, failures."""
