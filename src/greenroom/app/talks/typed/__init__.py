"""What a person types, before an agent reads it: commands, files, several lines. Handlers take it in order."""
