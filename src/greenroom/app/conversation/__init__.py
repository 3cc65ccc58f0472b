"""Conversations between a person and agents: questions, runs, chats, and what is typed in them."""
