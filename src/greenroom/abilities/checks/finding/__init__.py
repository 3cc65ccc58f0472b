"""Finding checks: one file for each kind of project, and `found`, which asks them all."""
