"""The `outlast` command line, run inside the test process: the same code, without an interpreter's start each time."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from app.cli.exits import exit_code_of
from app.settings import Settings
from tests.processes import as_environment
from workers.main import cli


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def json(self) -> Any:
        """Its stdout, which must be one strict JSON text."""
        return json.loads(self.out, parse_constant=_refuse)


class Shell:
    """Runs commands on a test's servers, one at a time; there is no terminal."""

    def __init__(self, settings: Settings) -> None:
        self._environment = as_environment(settings)

    async def __call__(self, *words: object, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        return await asyncio.to_thread(self._run, [str(word) for word in words], stdin, env or {})

    def _run(self, words: list[str], stdin: str, env: Mapping[str, str]) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
            patch.dict(os.environ, {**self._environment, **env}),
        ):
            try:
                code = exit_code_of(lambda: cli(words, prog_name="outlast"))
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
