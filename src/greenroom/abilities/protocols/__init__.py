"""How we ask and how we read: prompt and parser in pairs."""
