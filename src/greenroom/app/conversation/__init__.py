"""Conversations between a person and agents: questions, runs, chats, and the input of chats."""
