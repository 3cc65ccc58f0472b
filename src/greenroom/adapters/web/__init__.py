"""The web outside: a guard that every connection passes, pages, searches, and a proxy for commands."""

from typing import Final

DUCKDUCKGO: Final = "html.duckduckgo.com:443"
TAVILY: Final = "https://api.tavily.com/search"
TAVILY_KEY: Final = "TAVILY_API_KEY"
"""Where the searches are that are not a person's own, and the variable in which the key is looked for."""
