"""Tools: everything with side effects. Each tool is an executor with a card. The policy decides before a tool runs."""
