"""How the commands are typed: arguments, options, help. What they do is in `commands`, loaded when it is done."""
