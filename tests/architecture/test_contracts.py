"""Which module may know which: the import contracts, and what they cannot express."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.architecture import tree

HANDLERS_MAY_IMPORT = {"outlast", "pydantic", "httpx", "workers.handlers"} | sys.stdlib_module_names
CLOCKS_AND_DICE = {"now", "utcnow", "today", "time", "monotonic", "random", "uuid1", "uuid4", "uuid7", "urandom"}


def test_the_import_contracts_hold() -> None:
    linter = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    run = subprocess.run([sys.executable, "-c", linter], cwd=tree.ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_handlers_import_only_what_a_handler_author_has() -> None:
    strangers = [
        f"{tree.name(path)} imports {module}"
        for path in tree.python("workers/handlers")
        for module in sorted(tree.imports(path))
        if not any(module == known or module.startswith(f"{known}.") for known in HANDLERS_MAY_IMPORT)
    ]
    assert strangers == []


def test_the_domain_reads_no_clock_and_rolls_no_dice() -> None:
    impure = [
        f"{tree.name(path)}:{node.lineno} calls {node.func.attr}"
        for path in tree.python("app/domain")
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS_AND_DICE
    ]
    assert impure == []


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("workers.child", {"sqlalchemy", "httpx", "typer", "fastapi"}),
        ("workers.supervisor", {"sqlalchemy", "httpx", "typer", "fastapi", "redis"}),
        ("workers.relay", {"sqlalchemy", "httpx", "typer", "fastapi"}),
        ("app.api.serve", {"sqlalchemy", "httpx", "typer", "redis"}),
    ],
)
def test_a_process_loads_at_its_start_only_what_it_runs_with(module: str, without: set[str]) -> None:
    """A killed worker's jobs wait for its successor, and these take longer to load than all the rest."""
    loaded = f"import sys, {module}; print(*set(sys.modules) & {without})"
    ran = subprocess.run([sys.executable, "-c", loaded], cwd=tree.ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_nobody_hides_an_import_in_a_string() -> None:
    dynamic = {
        tree.name(path)
        for path in tree.python("app", "workers")
        if any(module.startswith("importlib.import_module") or module == "importlib" for module in tree.imports(path))
    }
    assert dynamic <= {"workers/registry.py"}
