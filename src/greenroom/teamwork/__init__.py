"""Teams that build software in parallel: profiles, classification, plans, hand-offs and their integration."""
