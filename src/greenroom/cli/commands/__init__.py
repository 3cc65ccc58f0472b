"""The commands: one file per group of them, imported only when one of it is used."""
