"""Tools for the artifacts of a task: made, changed, rewritten, read by id. They use the engine that changes files."""
