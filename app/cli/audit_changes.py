"""What changed between two audits, a line each, and on a terminal a sign of life."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from app.cli.exits import absence, say
from app.cli.formats import Format, cell
from app.domain.errors import DependencyAway
from app.domain.findings import Finding
from app.domain.instants import rfc3339
from app.domain.views import dump


class Changes:
    """What was seen last, and whether anything was ever found."""

    def __init__(self, output: Format) -> None:
        self.found = False
        self._output = output
        self._seen: Sequence[Finding] = []
        self._away = ""
        self._looks = 0

    def see(self, now: Sequence[Finding], away: DependencyAway | None) -> None:
        """Prints how these findings differ from those before; `away` is whom this look could not ask."""
        self._miss("" if away is None else absence(away))
        self.found = self.found or bool(now)
        if _marks(now) != _marks(self._seen):
            self._tell(now)
        self._seen = now
        self._looks += 1
        self._beat(f"{len(now)} finding(s)" if now else "nothing is broken")

    def miss(self, away: DependencyAway) -> None:
        """Says once that nothing can be seen."""
        self._miss(absence(away))
        self._beat("cannot see")

    def close(self) -> None:
        if sys.stderr.isatty():
            say("")

    def _tell(self, now: Sequence[Finding]) -> None:
        at = rfc3339(datetime.now(UTC))
        if self._output is Format.JSON:
            print(dump({"at": at, "ok": not now, "findings": [asdict(one) for one in now]}), flush=True)
            return
        for event, some, others in (("gone", self._seen, now), ("found", now, self._seen)):
            marks = _marks(others)
            for one in some:
                if _mark(one) not in marks:
                    self._line(at, event, one)

    def _line(self, at: str, event: str, one: Finding) -> None:
        match self._output:
            case Format.TABLE:
                print(f"{at}  {event:5}  {one.check:12}  {cell(one.job_id)}  {cell(one.detail)}", flush=True)
            case Format.IDS:
                if event == "found":
                    print(one.job_id or "-", flush=True)
            case Format.JSON | Format.JSONL:
                print(dump({"at": at, "event": event, **asdict(one)}), flush=True)

    def _miss(self, away: str) -> None:
        if away and away != self._away:
            say(f"outlast: {away}")
        self._away = away

    def _beat(self, word: str) -> None:
        if sys.stderr.isatty():
            print(
                f"\r{datetime.now(UTC):%H:%M:%S}Z  {word}, look {self._looks}\033[K",
                end="",
                file=sys.stderr,
                flush=True,
            )


def _mark(finding: Finding) -> tuple[str, UUID | None, str]:
    """What makes two findings the same: idle times in their words may grow."""
    return finding.check, finding.job_id, finding.detail if finding.check != "broker" else finding.detail.split(",")[0]


def _marks(findings: Sequence[Finding]) -> set[tuple[str, UUID | None, str]]:
    return {_mark(one) for one in findings}
