"""Terraform in a folder of a test, where it and the AWS provider are to be had."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLUGINS = "TF_PLUGIN_DIR"
SECONDS_MAX = 240.0
QUIET = {
    "TF_IN_AUTOMATION": "1",
    "TF_INPUT": "0",
    "CHECKPOINT_DISABLE": "1",
    "TF_REGISTRY_DISCOVERY_RETRY": "0",
    "TF_REGISTRY_CLIENT_TIMEOUT": "10",
}
PROBE = """\
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}
"""
SAID_CHARS_MAX = 600


class NotHere(Exception):
    """Terraform, or the AWS provider, is not to be had; the text says which, and why."""


@dataclass(frozen=True)
class Terraform:
    """Works in `folder`, which holds all it writes."""

    folder: Path

    def run(self, *words: str, seconds: float = SECONDS_MAX) -> str:
        """What it says on stdout. Raises `AssertionError` with the end of its log when it fails."""
        done = _terraform(self.folder, *words, seconds=seconds)
        assert done.returncode == 0, f"terraform {words[0]}: {done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def outputs(self) -> dict[str, Any]:
        """The outputs by name."""
        return {name: one["value"] for name, one in json.loads(self.run("output", "-json")).items()}


def provider_plugins(folder: Path) -> Path:
    """A folder with the AWS provider, from `TF_PLUGIN_DIR` or where Terraform finds it. Raises `NotHere`."""
    if shutil.which("terraform") is None:
        raise NotHere("terraform is not on the PATH")
    folder.mkdir()
    (folder / "main.tf").write_text(PROBE)
    given = [f"-plugin-dir={os.environ[PLUGINS]}"] if os.environ.get(PLUGINS) else []
    try:
        done = _terraform(folder, "init", "-backend=false", "-no-color", *given, seconds=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise NotHere(f"no AWS provider within {SECONDS_MAX} s; {PLUGINS} may name a folder with it") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[-SAID_CHARS_MAX:]
        raise NotHere(f"no AWS provider to be had; {PLUGINS} may name a folder with it. Terraform says: {said}")
    return folder / ".terraform" / "providers"


def _terraform(folder: Path, *words: str, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["terraform", *words],
        cwd=folder,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
