"""The policy under fire: wild calls of wild agents under wild rules, and a checker that reads what the log says."""
