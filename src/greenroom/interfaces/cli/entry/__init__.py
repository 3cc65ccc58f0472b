"""How a command is typed: the line, the table of commands, what all are told. `--help` imports only this."""
