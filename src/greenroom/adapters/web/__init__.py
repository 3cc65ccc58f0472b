"""The web outside: a guard that every connection passes, pages, searches, and a proxy for commands."""
