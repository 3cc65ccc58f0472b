"""Interactive loops: following a run, a chat, an inbox in an organisation."""
