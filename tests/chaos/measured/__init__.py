"""Runs that hold figures against promises: one after the other, alone on the machine, at default settings."""
