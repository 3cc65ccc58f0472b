"""The demo's story at this door: the commands that a person would type, as real processes, and what came of each."""
