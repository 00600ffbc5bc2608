"""Settings: environment `OUTLAST_*`, units in the names, relations checked at start."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

URL_SCHEMES = {
    "database_url": ("postgresql://", "postgres://"),
    "redis_url": ("redis://", "rediss://", "unix://"),
}


class Settings(BaseSettings):
    """What can be tuned, with its default. Every name is read as `OUTLAST_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="OUTLAST_", extra="ignore", frozen=True)

    database_url: SecretStr = SecretStr("postgresql://127.0.0.1:5432/outlast")
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    transport: Literal["redis", "sqs", "pg"] = "redis"
    sqs_endpoint_url: str | None = Field(default=None, description="of an SQS that is not AWS's own")
    sqs_prefix: str = Field(default="outlast-", pattern="^[A-Za-z0-9_-]{1,30}$", description="of its queues' names")
    handlers: str = Field(default="", description="comma-separated modules that define handlers")
    queues: str = Field(default="default", description="comma-separated queues a worker serves")

    worker_concurrency: int = Field(default=100, ge=1, le=10_000)
    lease_seconds: float = Field(default=15, gt=0, le=3_600)
    heartbeat_seconds: float = Field(default=1, gt=0)
    suspect_seconds: float = Field(default=3, gt=0)
    sweep_seconds: float = Field(default=0.2, gt=0, le=60)
    shutdown_seconds: float = Field(default=30, ge=0, le=86_400)
    republish_seconds: float = Field(default=5, gt=0)
    block_seconds: float = Field(default=1, gt=0, le=30, description="longest wait for the broker in one read")

    backoff_base_seconds: float = Field(default=1, gt=0)
    backoff_cap_seconds: float = Field(default=300, gt=0)
    max_crashes: int = Field(default=3, ge=2, le=1_000)
    max_releases: int = Field(default=100, ge=1, le=10_000)
    solo_processes: int = Field(default=4, ge=1, le=64, description="last starts one supervisor runs at once")

    max_body_bytes: int = Field(default=1_048_576, ge=1_024, le=64 * 1_048_576)
    max_result_bytes: int = Field(default=1_048_576, ge=2, le=64 * 1_048_576)
    max_effect_bytes: int = Field(default=262_144, ge=2, le=64 * 1_048_576)
    max_horizon_days: int = Field(default=366, ge=1, le=36_600)
    retention_days: int = Field(default=30, ge=1)
    dead_retention_days: int = Field(default=180, ge=1)
    unknown_kind_days: float = Field(default=7, gt=0)

    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8080, ge=0, le=65_535)
    api_token: SecretStr | None = None
    allow_anonymous: bool = False
    database_pool_max: int = Field(default=10, ge=1, le=1_000)
    database_timeout_seconds: float = Field(default=10, gt=0, le=60)

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"
    failpoints: str = Field(default="", description="folder of orders to kill, stop or fail this process, for tests")

    @field_validator("database_url", "redis_url")
    @classmethod
    def _address(cls, url: SecretStr, info: ValidationInfo) -> SecretStr:
        schemes = URL_SCHEMES[str(info.field_name)]
        if not url.get_secret_value().startswith(schemes):
            raise ValueError(f"must begin with {' or '.join(schemes)}")
        if not _is_address(url.get_secret_value()):
            raise ValueError("has a host or a port that cannot be read")
        return url

    @field_validator("sqs_endpoint_url")
    @classmethod
    def _endpoint(cls, url: str | None) -> str | None:
        if url is not None and not (url.startswith(("http://", "https://")) and _is_address(url)):
            raise ValueError("must be an http:// or https:// address")
        return url

    @field_validator("failpoints")
    @classmethod
    def _of_ours(cls, folder: str) -> str:
        if folder and not _is_ours_alone(Path(folder)):
            raise ValueError("must be a folder that belongs to this user and that nobody else may write to")
        return folder

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if not self.heartbeat_seconds < self.suspect_seconds < self.lease_seconds:
            raise ValueError("heartbeat_seconds < suspect_seconds < lease_seconds must hold")
        if self.backoff_base_seconds > self.backoff_cap_seconds:
            raise ValueError("backoff_base_seconds must not exceed backoff_cap_seconds")
        if self.transport == "sqs" and find_spec("aiobotocore") is None:
            raise ValueError("transport sqs needs the extra of that name: outlast[sqs]")
        return self

    @property
    def handler_modules(self) -> list[str]:
        return names(self.handlers)

    @property
    def queue_names(self) -> list[str]:
        return names(self.queues)


def _is_address(url: str) -> bool:
    """Whether host and port can be read. Several hosts, as PostgreSQL allows, are left to its driver."""
    try:
        parts = urlsplit(url)
        return "," in parts.netloc or parts.port is None or parts.port > 0
    except ValueError:
        return False


def _is_ours_alone(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    others_may_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not others_may_write


def names(text: str) -> list[str]:
    """The words of a comma-separated list, in order, without repeats."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()
