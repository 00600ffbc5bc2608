"""Exit codes, and the one place where an error becomes one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import IntEnum

from pydantic import ValidationError

from app.domain.errors import BrokerAway, DependencyAway, HandlersRefused, JsonRefused, Refused
from app.settings import Settings


class ExitCode(IntEnum):
    """What a command says to the shell that ran it."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_ALLOWED = 3
    NOT_FOUND = 4
    CONFLICT = 5
    PARTLY_DONE = 6
    TIMED_OUT = 7
    INVARIANT_BROKEN = 8
    DEPENDENCY_AWAY = 9
    INTERRUPTED = 130


BY_STATUS = {
    400: ExitCode.USAGE,
    401: ExitCode.NOT_ALLOWED,
    403: ExitCode.NOT_ALLOWED,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
    413: ExitCode.USAGE,
    422: ExitCode.USAGE,
    503: ExitCode.DEPENDENCY_AWAY,
}


def code_of(refused: Refused) -> ExitCode:
    return BY_STATUS.get(refused.status, ExitCode.ERROR)


def say(text: str) -> None:
    """Talk goes to stderr; stdout is for data."""
    print(text, file=sys.stderr, flush=True)


def absence(away: DependencyAway) -> str:
    """Which server does not answer, where to look for its address, and what was heard instead."""
    server = "the broker" if isinstance(away, BrokerAway) else "PostgreSQL"
    return f"{server} ({away.setting}) does not answer: {away}"


def exit_code_of(command: Callable[[], object]) -> int:
    """Runs a command to its end and says how it went; errors become one line of talk.

    `SystemExit`, by which Typer ends a command, passes through.
    """
    try:
        command()
    except Refused as refused:
        say(f"outlast: {refused.detail}")
        for error in refused.errors:
            say(f"  {error.get('pointer') or '/'}: {error.get('detail', '')}")
        return code_of(refused)
    except (JsonRefused, HandlersRefused) as refused:
        say(f"outlast: {refused}")
        return ExitCode.USAGE
    except DependencyAway as away:
        say(f"outlast: {absence(away)}")
        return ExitCode.DEPENDENCY_AWAY
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def read_settings() -> Settings:
    """The settings of this process. Raises `Refused` (exit 2) for a value that is out of range."""
    try:
        return Settings()
    except ValidationError as error:
        found = [
            {
                "pointer": "_".join(["OUTLAST", *map(str, one["loc"])]).upper(),
                "detail": one["msg"].removeprefix("Value error, "),
            }
            for one in error.errors(include_input=False, include_url=False, include_context=False)
        ]
        raise Refused("invalid-settings", 422, "the settings are not valid", errors=found) from None
