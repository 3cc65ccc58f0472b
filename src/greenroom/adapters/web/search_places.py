"""Where the searches are that are not a person's own. Whoever only wants to know that loads nothing else."""

from __future__ import annotations

from typing import Final

DUCKDUCKGO: Final = "html.duckduckgo.com:443"
TAVILY: Final = "https://api.tavily.com/search"
TAVILY_KEY: Final = "TAVILY_API_KEY"
"""The variable in which its key is looked for."""
