"""The doors: how people and programs come in. They talk to `app` and never past it."""
