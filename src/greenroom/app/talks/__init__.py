"""Talks: teams of agents that a person talks to. A question (`ask`), a piece of work (`run`), a chat."""
