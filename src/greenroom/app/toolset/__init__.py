"""The tools of a team: who can call which tool, how a call runs, and what its commands can reach."""
