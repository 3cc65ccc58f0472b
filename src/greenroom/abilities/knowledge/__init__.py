"""What outlives a task: memory and methodology."""
