"""The skills of agents that plan: each is a prompt and what its answer means, all are run alike (`asking.py`)."""
