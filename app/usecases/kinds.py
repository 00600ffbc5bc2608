"""What an API process knows of the published kinds, and whether an input fits one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

from jsonschema_rs import ValidationError, Validator, validator_for

from app.domain.errors import Refused
from app.domain.jsontext import JsonObject, JsonValue, token
from app.domain.kinds import Kind
from app.store import kinds
from app.store.database import Database
from app.telemetry import log

FRESH_SECONDS = 5.0
ERRORS_MAX = 20
MESSAGE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class KnownKind:
    """A kind with its compiled input schema; None where the schema cannot be compiled."""

    kind: Kind
    validator: Validator | None

    def faults(self, value: JsonValue) -> list[dict[str, str]]:
        """Where and why the input does not fit, at most 20 errors. The worker's own model has the last word."""
        if self.validator is None or self.validator.is_valid(value):
            return []
        return [_fault(error) for error in islice(self.validator.iter_errors(value), ERRORS_MAX)]


class Catalog:
    """Published kinds, read from the database when they are missing or older than 5 seconds.

    A refusal is never based on an old copy: before a kind is called unknown or an input unfit, the
    catalog is read again.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, KnownKind] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def all(self) -> list[Kind]:
        """Every published kind, by name. Raises `DatabaseAway`."""
        await self._refresh(_now())
        return [known.kind for known in self._known.values()]

    async def accept(self, name: str, value: JsonValue, *, asked_at: float, pointer: str = "") -> Kind:
        """The kind that takes this input, asked for at `asked_at` on the clock of the loop.

        `pointer` is where the request stands in its document.
        Raises `Refused` 422 `unknown-kind` or `invalid-input`, and `DatabaseAway`.
        """
        await self._refresh(asked_at - FRESH_SECONDS)
        if not self._accepts(name, value):
            await self._refresh(asked_at)
        known = self._known.get(name)
        if known is None:
            errors = [{"pointer": f"{pointer}/kind", "detail": "was never published"}]
            raise Refused("unknown-kind", 422, f"No worker ever published the kind {name}.", errors=errors)
        faults = known.faults(value)
        if faults:
            errors = [{**fault, "pointer": f"{pointer}/input{fault['pointer']}"} for fault in faults]
            raise Refused("invalid-input", 422, f"The input does not fit the schema of {name}.", errors=errors)
        return known.kind

    def _accepts(self, name: str, value: JsonValue) -> bool:
        known = self._known.get(name)
        return known is not None and (known.validator is None or known.validator.is_valid(value))

    async def _refresh(self, not_before: float) -> None:
        """Reads the catalog unless a reading that began at `not_before` or later is there; one at a time."""
        if self._read_at >= not_before:
            return
        async with self._reading:
            if self._read_at >= not_before:
                return
            began_at = _now()
            found = await kinds.read_all(self._db)
            self._known = {kind.name: self._compiled(kind) for kind in found}
            self._read_at = began_at

    def _compiled(self, kind: Kind) -> KnownKind:
        known = self._known.get(kind.name)
        if known is not None and known.kind == kind:
            return known
        return KnownKind(kind, _validator(kind.name, kind.input_schema))


def _validator(name: str, schema: JsonObject) -> Validator | None:
    try:
        return validator_for(schema, retriever=_no_remote_references)
    except ValueError as error:
        log.warning("schema_unusable", kind=name, error=str(error)[:MESSAGE_CHARS_MAX])
        return None


def _no_remote_references(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is a remote reference")


def _fault(error: ValidationError) -> dict[str, str]:
    return {"pointer": _pointer(error.instance_path), "detail": error.message[:MESSAGE_CHARS_MAX]}


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(token(step) for step in path)


def _now() -> float:
    return asyncio.get_running_loop().time()
