"""Logs: one line an event on stderr, through one chain of processors, whoever wrote it.

`log.info("rescued", jobs=3)` names what happened and carries figures and ids. Inputs, results and effect
results are never logged. Secrets of the settings and passwords in URLs are taken out of every line.

An exception that came out of a handler may hold a caller's data in its text, so such a one is logged as
`error_type=...` with `where=frames(error)`, never with `exc_info`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import sys
import threading
import traceback
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from app.settings import Settings

FRAMES_MAX = 20
CAUSES_MAX = 5
TEXT_CHARS_MAX = 2_000
SECRET_CHARS_MIN = 6
HIDDEN = "***"

# Their INFO lines are one per request, and httpx writes whole URLs, queries included.
TALKATIVE = ("httpx", "httpcore", "uvicorn.access", "alembic", "asyncio")

log: FilteringBoundLogger = structlog.get_logger()

_job: ContextVar[tuple[UUID, int] | None] = ContextVar("outlast_job", default=None)
_process: dict[str, Any] = {}
_password_in_url = re.compile(r"(://[^/\s:@]*):[^/\s@]+@")


def configure(settings: Settings, role: str) -> None:
    """Sets up logging for this process, once, at its start; stdlib loggers come the same way.

    `role` (`api`, `relay`, `worker`, ...) stands in every line, beside the process id.
    """
    _process.clear()
    _process.update(role=role, pid=os.getpid())
    level = logging.getLevelNamesMapping()[settings.log_level]
    _set_up(level, _renderer(settings.log_format), _secrets(settings))
    _adopt_stdlib(level)
    threading.excepthook = _report_thread_failure
    sys.unraisablehook = _report_unraisable


def bind_process(**values: Any) -> None:
    """Adds values to every line of this process, for example its worker id."""
    _process.update(values)


def bind_job(job_id: UUID, attempt: int) -> None:
    """Adds the job to every line that the current task, and tasks and threads it starts, write."""
    _job.set((job_id, attempt))


def frames(error: BaseException) -> list[str]:
    """Where `error` came from: its innermost 20 frames as `file:line function`, no text of the error, no locals."""
    return _where(error.__traceback__)


def stack(frame: FrameType) -> list[str]:
    """Where a thread is, told as `frames` does: its innermost 20 frames, the innermost last."""
    innermost = itertools.islice(traceback.walk_stack(frame), FRAMES_MAX)
    summary = traceback.StackSummary.extract(reversed(list(innermost)), lookup_lines=False)
    return _places(summary)


def report_task_failure(_loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """An event loop's exception handler. asyncio's own would print the exception's text, whoever raised it."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        log.error("task_failed", error_type=_name(error), where=frames(error))
    else:
        log.error("loop_trouble", what=str(context.get("message"))[:TEXT_CHARS_MAX])


def _report_thread_failure(failed: threading.ExceptHookArgs) -> None:
    """Python's own would print the exception's text, whoever raised it."""
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        log.error("thread_failed", error_type=_name(failed.exc_value), where=frames(failed.exc_value))


def _report_unraisable(failed: sys.UnraisableHookArgs) -> None:
    """As `_report_thread_failure`, of what was raised where nobody can catch it, as in a `__del__`."""
    if failed.exc_value is not None:
        log.error("unraisable", error_type=_name(failed.exc_value), where=frames(failed.exc_value))


def _name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _where(tb: TracebackType | None) -> list[str]:
    innermost = deque(traceback.walk_tb(tb), maxlen=FRAMES_MAX)
    return _places(traceback.StackSummary.extract(iter(innermost), lookup_lines=False))


def _places(summary: traceback.StackSummary) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in summary]


def _error_chain(error: BaseException) -> list[dict[str, Any]]:
    chain: list[dict[str, Any]] = []
    link: BaseException | None = error
    while link is not None and len(chain) < CAUSES_MAX:
        chain.append({"type": _name(link), "text": str(link)[:TEXT_CHARS_MAX], "where": frames(link)})
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return chain


def _add_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    given: object = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given else None
    if error is not None:
        event["error"] = _error_chain(error)
    return event


def _add_scope(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event.update(_process)
    job = _job.get()
    if job is not None:
        event.setdefault("job", str(job[0]))
        event.setdefault("attempt", job[1])
    return event


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    first = {name: event.pop(name) for name in ("timestamp", "level", "event")}
    return json.dumps({**first, **event}, default=str, ensure_ascii=False)


def _renderer(log_format: str) -> Processor:
    if log_format == "json":
        return _as_json
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())


def _secrets(settings: Settings) -> list[str]:
    """What must stand in no line. A password shorter than six characters is only looked for inside URLs."""
    passwords: set[str] = set()
    for url in (settings.database_url, settings.redis_url):
        password = urlsplit(url.get_secret_value()).password
        if password:
            passwords |= {password, unquote(password)}
    if settings.api_token is not None:
        passwords.add(settings.api_token.get_secret_value())
    return sorted((word for word in passwords if len(word) >= SECRET_CHARS_MIN), key=len, reverse=True)


class _Redactor:
    """The last processor: takes secrets out of the finished line."""

    def __init__(self, secrets: list[str]) -> None:
        self._secrets = secrets

    def __call__(self, _logger: WrappedLogger, _method: str, line: Any) -> str:
        text = _password_in_url.sub(rf"\1:{HIDDEN}@", str(line))
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class _Stderr:
    """Where lines go. A full disk, a closed pipe or a handler's own stderr loses the line, never the job."""

    def msg(self, line: str) -> None:
        try:
            sys.stderr.write(line + "\n")
        except Exception:
            return

    debug = info = warning = error = critical = exception = msg


class _Adopted(logging.Handler):
    """Hands records of stdlib loggers (uvicorn, asyncio, alembic, libraries of handlers) to our chain."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        try:
            text = record.getMessage()
        except Exception:
            # A library's mistake in its own arguments must not end what it was logging about.
            text = str(record.msg)
        log.log(record.levelno, text[:TEXT_CHARS_MAX], logger=record.name, exc_info=error)


def _set_up(level: int, renderer: Processor, secrets: list[str]) -> None:
    structlog.configure(
        processors=[
            _add_scope,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_exception,
            renderer,
            _Redactor(secrets),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_names: _Stderr(),
        cache_logger_on_first_use=False,
    )


def _adopt_stdlib(level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_Adopted()]
    root.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)


# Until `configure` runs (a test, a library import) nothing may reach stdout, which is for data.
_set_up(logging.WARNING, _as_json, [])
