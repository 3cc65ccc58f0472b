"""The sandbox for commands: tiers, trials, protection of files and limits."""
