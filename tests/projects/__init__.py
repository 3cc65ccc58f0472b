"""Ten public projects, each with a right and a breaking change, played through the command line as a user would."""
