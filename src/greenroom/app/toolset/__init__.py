"""The tools of a team: who may call which, how a call is made, and what its commands may reach."""
