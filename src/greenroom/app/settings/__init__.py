"""Settings: their files, their schema, the origin of each value, and API keys."""

from greenroom.app.settings.home import home_folder

__all__ = ["home_folder"]
