"""Agents as actors: an asyncio task only while there is something to do."""
