"""Faults planted in a copy of the product, each with the run under faults that must catch it."""
