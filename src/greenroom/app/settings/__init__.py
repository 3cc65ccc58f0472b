"""Settings: where things are kept, what a person has set, where each value comes from, and keys."""

from greenroom.app.settings.home import home_folder

__all__ = ["home_folder"]
