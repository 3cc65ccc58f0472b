"""What may happen: `decide(world, intent)` gives events or a refusal. Pure; a refusal is a value."""
