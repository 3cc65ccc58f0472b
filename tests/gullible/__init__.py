"""The gullible agent: a model that obeys every instruction it reads, and the effects outside."""
