"""Models of vendors that speak a language of their own (Anthropic, Google, Bedrock, …), through pydantic-ai.

Importing this package costs nothing; its modules import pydantic-ai, so only who asks such a model imports them. None
of its types leaves this room.
"""
