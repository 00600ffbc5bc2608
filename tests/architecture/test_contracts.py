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


@pytest.mark.parametrize("module", ["workers.child", "workers.supervisor", "workers.relay", "app.api.serve"])
def test_a_process_loads_no_migrations_at_its_start(module: str) -> None:
    """They take longer to load than all the rest, and a killed worker's jobs wait for its successor."""
    loaded = f"import sys, {module}; raise SystemExit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], cwd=tree.ROOT).returncode == 0


def test_nobody_hides_an_import_in_a_string() -> None:
    dynamic = {
        tree.name(path)
        for path in tree.python("app", "workers")
        if any(module.startswith("importlib.import_module") or module == "importlib" for module in tree.imports(path))
    }
    assert dynamic <= {"workers/registry.py"}
