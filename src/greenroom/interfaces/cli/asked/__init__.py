"""What a person asked for, as data: the orders, the options they share, the table of commands."""
