"""What touches the world outside."""
