"""The web: an address filter for every connection, pages, searches, and an egress proxy for commands."""

from typing import Final

DUCKDUCKGO: Final = "html.duckduckgo.com:443"
TAVILY: Final = "https://api.tavily.com/search"
TAVILY_KEY: Final = "TAVILY_API_KEY"
"""The addresses of the public search services, and the variable for Tavily's key."""
