"""The only place that opens SQS connections, and the one that names its failures.

botocore retries calls by itself; here nothing is retried: the error goes up, and each caller knows what a call that was
made twice would do.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore.exceptions import BotoCoreError, ClientError

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.telemetry import log
from app.transport.sqs_names import sqs_name

BATCH = 10  # entries a call takes, by SQS
CONNECT_SECONDS = 2.0
REPLY_SECONDS = 4.0
# A policy of the queue that moves messages away counts deliveries, and a job may take many: a worker that waits for the
# database, a lease that ran out. What it takes away early is published again, but nobody looks where it went.
RECEIVES_LEAST = 100
NO_QUEUE = (
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.QueueDeletedRecently",
)

Call = Callable[..., Awaitable[dict[str, Any]]]


class SqsAway(BrokerAway):
    """SQS does not answer, or refuses."""

    setting = "OUTLAST_SQS_ENDPOINT_URL, AWS's region and credentials"


class NoQueue(SqsAway):
    """The queue is not there; whoever meets this makes it again."""


@asynccontextmanager
async def broker_named() -> AsyncIterator[None]:
    """Turns the driver's ways of saying "gone" and "refused" into `SqsAway`, a missing queue into `NoQueue`."""
    try:
        yield
    except ClientError as error:
        told = cast("dict[str, Any]", error.response).get("Error", {})
        code = str(told.get("Code", ""))
        if code in NO_QUEUE:
            raise NoQueue(code) from error
        raise SqsAway(f"refused: {code}: {told.get('Message', '')}"[:500]) from error
    except (BotoCoreError, OSError, TimeoutError) as error:
        raise SqsAway(f"{type(error).__name__}: {error}") from error


class SqsClient:
    """A few connections to SQS. Address, region and credentials come from where AWS's own tools look for them."""

    def __init__(self, settings: Settings, *, connections_max: int, reply_seconds: float = REPLY_SECONDS) -> None:
        self._settings = settings
        self._config = AioConfig(
            max_pool_connections=connections_max,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=reply_seconds,
            retries={"total_max_attempts": 1},
        )
        self._together = asyncio.Semaphore(connections_max)
        self._opening = asyncio.Lock()
        self._open = AsyncExitStack()
        self._client: Any = None
        self._urls: dict[str, str] = {}

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """One call, such as `list_queues`. Raises `SqsAway`, `NoQueue`."""
        async with self._together, broker_named():
            call: Call = getattr(await self._opened(), operation)
            return await call(**arguments)

    async def on(self, queue: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """One call about a queue, which is made when it is missing, also when it was lost. Raises `SqsAway`."""
        try:
            return await self.call(operation, QueueUrl=await self._url(queue), **arguments)
        except NoQueue:
            self._urls.pop(queue, None)
            return await self.call(operation, QueueUrl=await self._url(queue), **arguments)

    async def on_each(
        self, queue: str, operation: str, entries: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any] | BrokerAway]:
        """A batch operation on entries with an `Id` each, ten a call; what SQS says of each call, or why nothing."""
        pages = [entries[start : start + BATCH] for start in range(0, len(entries), BATCH)]
        answers = await asyncio.gather(
            *(self.on(queue, operation, Entries=page) for page in pages), return_exceptions=True
        )
        told: list[dict[str, Any] | BrokerAway] = []
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, BrokerAway):
                raise answer
            told.append(answer)
        return told

    async def close(self) -> None:
        """Closes the connections; does not raise."""
        try:
            async with broker_named():
                await self._open.aclose()
        except BrokerAway:
            return

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                session: Any = AioSession()  # typed by us: its **kwargs
                made = session.create_client("sqs", endpoint_url=self._settings.sqs_endpoint_url, config=self._config)
                self._client = await self._open.enter_async_context(made)
            return self._client

    async def _url(self, queue: str) -> str:
        url = self._urls.get(queue)
        if url is None:
            url = await self._found_or_made(sqs_name(self._settings.sqs_prefix, queue))
            await self._refuse_early_redrive(url)
            self._urls[queue] = url
        return url

    async def _found_or_made(self, name: str) -> str:
        try:
            return (await self.call("get_queue_url", QueueName=name))["QueueUrl"]
        except NoQueue:
            seconds = str(math.ceil(self._settings.lease_seconds))
            made = await self.call("create_queue", QueueName=name, Attributes={"VisibilityTimeout": seconds})
            log.info("queue_made", name=name)
            return made["QueueUrl"]

    async def _refuse_early_redrive(self, url: str) -> None:
        told = await self.call("get_queue_attributes", QueueUrl=url, AttributeNames=["RedrivePolicy"])
        policy = told.get("Attributes", {}).get("RedrivePolicy")
        most = int(json.loads(policy).get("maxReceiveCount", RECEIVES_LEAST)) if policy else RECEIVES_LEAST
        if most < RECEIVES_LEAST:
            raise SqsAway(
                f"refused: {url.rpartition('/')[2]} gives messages up after {most} deliveries; at least "
                f"{RECEIVES_LEAST}, or no redrive policy: when a job is given up is not the queue's to say"
            )
