"""Evals: small tasks that show whether a model can be trusted with work. Played for real, judged by code."""
