"""Skills: executors that call the model. Each skill is a module with its prompt files."""
