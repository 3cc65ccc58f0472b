"""The packaged agents of the research desk, by language."""
