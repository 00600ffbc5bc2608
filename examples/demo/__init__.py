"""The demonstration: real tickets through everything that can go wrong, and proof that nothing got lost."""
