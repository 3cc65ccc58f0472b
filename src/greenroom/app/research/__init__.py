"""The research desk: its agents, its pages, and its runs."""
