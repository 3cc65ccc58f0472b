"""The sandbox from outside: what tries to get out of it, what has to work in it, and what is left behind."""
