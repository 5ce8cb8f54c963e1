"""Several connections at once: stepped by hand, and hammered at random."""
