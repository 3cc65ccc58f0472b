"""The wiring: what is put together how, and the facade through which doors and programs use it."""
