"""The log in one SQLite file: many readers, one writer thread per process, one fsync for all who wait."""

from greenroom.adapters.storage.sqlite.log import SqliteLog

__all__ = ["SqliteLog"]
