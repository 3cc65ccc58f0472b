"""Teams that build software: their specialists, and how a team run starts and works."""
