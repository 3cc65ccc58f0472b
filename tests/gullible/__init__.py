"""The gullible agent: a model that obeys every order it reads, and what comes of it outside."""
