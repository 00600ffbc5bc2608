"""SQL lives in `app/store/sql`, one statement a file, and every file is run by somebody."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture import tree

SQL = tree.ROOT / "app" / "store" / "sql"
PARTITIONED = ("jobs", "outcomes", "effects", "attempts")

STATEMENT_IN_CODE = re.compile(
    r"\b(SELECT\s.+\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|pg_\w*advisory|pg_notify)",
    re.DOTALL | re.IGNORECASE,
)
RUNNERS = {"fetch", "fetchrow", "fetchval", "execute", "executemany", "cursor", "sql"}
COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
QUOTED = re.compile(r"\$(\w*)\$.*?\$\1\$|'[^']*'", re.DOTALL)


def _statements() -> dict[str, str]:
    return {path.stem: COMMENT.sub("", path.read_text(encoding="utf-8")) for path in sorted(SQL.glob("*.sql"))}


def test_a_file_holds_one_statement() -> None:
    several = [name for name, text in _statements().items() if ";" in QUOTED.sub("", text).rstrip().rstrip(";")]
    assert several == []


def test_every_statement_is_run_by_somebody() -> None:
    literals = {value for path in tree.python("app/store") for _, value in tree.strings(path)}
    families = {prefix for path in tree.python("app/store") for prefix in _prefixes(path)}
    unused = [
        name
        for name in _statements()
        if name not in literals and not any(name.removeprefix(family) in literals for family in families)
    ]
    assert unused == []


def test_every_name_that_is_run_has_its_file() -> None:
    names = set(_statements())
    strangers = [
        f"{tree.name(path)}:{node.lineno} runs {value}"
        for path in tree.python("app", "workers")
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.Call)
        for value in _statement_run_by(node)
        if value not in names
    ]
    assert strangers == []


def test_sql_stands_nowhere_else() -> None:
    found = [
        f"{tree.name(path)}:{line}"
        for path in tree.python("app", "workers")
        for line, value in tree.strings(path)
        if STATEMENT_IN_CODE.search(value)
    ]
    assert found == []


def test_a_statement_over_a_set_of_ids_bounds_its_partitions() -> None:
    unbounded = [
        name
        for name, text in _statements().items()
        if re.search(r"\bunnest\(\$1|= ?ANY ?\(\$1", text, re.IGNORECASE)
        and re.search(rf"\b(FROM|JOIN|UPDATE|USING)\s+({'|'.join(PARTITIONED)})\b", text, re.IGNORECASE)
        and "BETWEEN" not in text.upper()
    ]
    assert unbounded == []


def test_a_statement_that_locks_several_rows_locks_them_in_order() -> None:
    unordered = [
        name
        for name, text in _statements().items()
        for lock in re.finditer(r"FOR (NO KEY )?(UPDATE|SHARE)", text, re.IGNORECASE)
        if not _orders_or_locks_one(text[: lock.start()])
    ]
    assert unordered == []


def _orders_or_locks_one(before: str) -> bool:
    select = before[before.upper().rfind("SELECT") :]
    return bool(re.search(r"ORDER BY|= \$\d|\bid = ", select, re.IGNORECASE))


def _prefixes(path: Path) -> Iterator[str]:
    """Beginnings of f-strings such as f"audit_{check}": families of statements that are chosen by a word."""
    for node in ast.walk(tree.syntax(path)):
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            yield str(node.values[0].value)


def _statement_run_by(call: ast.Call) -> Iterator[str]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0] if call.args else None
    if called in RUNNERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value
