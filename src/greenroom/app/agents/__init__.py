"""Agents as files: where they are found, what their keys mean, and how a new one is written."""

from greenroom.app.agents.finding import Agents, find_agents, load_agent

__all__ = ["Agents", "find_agents", "load_agent"]
