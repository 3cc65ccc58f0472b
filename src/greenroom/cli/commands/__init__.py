"""The commands: one file per group, imported when one of its commands is used."""
