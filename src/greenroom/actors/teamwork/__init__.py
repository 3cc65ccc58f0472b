"""Teamwork: reactions that move tasks on. Each is a function of the world and returns intents."""
