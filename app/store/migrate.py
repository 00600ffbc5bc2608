"""Brings a database to the newest revision; any number of processes may call it at once."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.database import AWAY


def migrate(settings: Settings) -> None:
    """Applies what is missing, in one transaction behind an advisory lock. Blocking. Raises `DatabaseAway`."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
    config.attributes["database_url"] = settings.database_url.get_secret_value()
    try:
        command.upgrade(config, "head")
    except AWAY as error:
        raise DatabaseAway(f"{type(error).__name__}: {error}") from error
