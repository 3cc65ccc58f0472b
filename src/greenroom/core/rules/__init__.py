"""The rules: `decide(state, intent)` returns events or a `Rejection`. Pure; a rejection is a value."""
