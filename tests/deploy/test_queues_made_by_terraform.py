"""The SQS queues of `deploy/terraform`, made for real at an SQS, carry the jobs of the whole stack."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from app.settings import Settings
from app.transport.sqs_client import RECEIVES_LEAST, SqsClient
from app.transport.sqs_names import NAME_CHARS_MAX, sqs_name
from tests.client import Client, journal_of
from tests.deploy.terraform import NotHere, Terraform, provider_plugins
from tests.deploy.watched_sqs import Watched, watched_sqs
from tests.processes import ROOT, Stack, wait_until
from tests.sqs_server import GIVEN

pytestmark = pytest.mark.timeout(600)

MODULE = ROOT / "deploy" / "terraform" / "modules" / "queue"
QUEUES = ["default", "mail.urgent", "q" * 100]
JOBS = 1_000
JOBS_SECONDS_MAX = 120.0
# A free worker takes straight from PostgreSQL what is overdue, and everything while no relay is heard. Here that must
# not come about by a machine that is busy.
PATIENT: dict[str, Any] = {"republish_seconds": 300.0, "lease_seconds": 60.0, "suspect_seconds": 30.0}

MAIN = """\
provider "aws" {{
  region                      = "eu-central-1"
  access_key                  = "test"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true

  endpoints {{
    sqs = "{url}"
  }}
}}

module "queue" {{
  source = "{module}"

  prefix = "{prefix}"
  queues = ["{queues}"]
}}

output "names" {{
  value = module.queue.names
}}

output "dead_names" {{
  value = module.queue.dead_names
}}

output "redrive" {{
  value = module.queue.redrive
}}
"""


@dataclass(frozen=True)
class Made:
    """What Terraform made: SQS' names by queue."""

    url: str
    prefix: str
    names: dict[str, str]
    dead_names: dict[str, str]

    def client(self) -> SqsClient:
        return SqsClient(Settings(sqs_endpoint_url=self.url, sqs_prefix=self.prefix), connections_max=2)


@pytest.fixture
def made(sqs_url: str, tmp_path: Path) -> Iterator[Made]:
    """The queues, under a prefix of their own. The provider looks at each for 25 s before it believes in it."""
    folder = tmp_path / "terraform"
    folder.mkdir()
    try:
        plugins = provider_plugins(folder / "probe")
    except NotHere as error:
        pytest.skip(str(error))
    prefix = f"t{uuid4().hex[:12]}-"
    terraform = Terraform(folder)
    text = MAIN.format(url=sqs_url, module=MODULE.as_posix(), prefix=prefix, queues='", "'.join(QUEUES))
    (folder / "main.tf").write_text(text)
    terraform.run("init", "-no-color", f"-plugin-dir={plugins}")
    began = time.monotonic()
    terraform.run("apply", "-no-color", "-auto-approve")
    print(f"applied in {time.monotonic() - began:.1f} s")
    try:
        outputs = terraform.outputs()
        yield Made(sqs_url, prefix, outputs["names"], outputs["dead_names"])
    finally:
        if GIVEN in os.environ:  # moto ends with the test, and its queues with it
            terraform.run("destroy", "-no-color", "-auto-approve")


async def names_at_sqs(client: SqsClient, prefix: str) -> list[str]:
    told = await client.call("list_queues", QueueNamePrefix=prefix, MaxResults=1_000)
    return sorted(url.rpartition("/")[2] for url in told.get("QueueUrls", []))


async def attributes(client: SqsClient, name: str) -> dict[str, Any]:
    url = (await client.call("get_queue_url", QueueName=name))["QueueUrl"]
    return (await client.call("get_queue_attributes", QueueUrl=url, AttributeNames=["All"]))["Attributes"]


async def test_a_thousand_jobs_go_over_them_and_nothing_is_left(made: Made, stack: Stack, tmp_path: Path) -> None:
    client = made.client()
    try:
        await as_the_application_wants_them(made, client)
        with watched_sqs(made.url) as watched:
            ids = run_a_thousand(made, stack, watched, tmp_path / "journal")
            assert watched.sent == watched.received == set(ids), "every one of them went over SQS"
            assert watched.operations["CreateQueue"] == 0, "the application made no queue"
            audit = stack.run("audit")
            assert audit.returncode == 0, audit.stdout + audit.stderr
            stack.close()

        assert await names_at_sqs(client, made.prefix) == sorted(made.names.values())
        for name in made.dead_names.values():
            assert (await attributes(client, name))["ApproximateNumberOfMessages"] == "0"
    finally:
        await client.close()


async def as_the_application_wants_them(made: Made, client: SqsClient) -> None:
    """Its names, and dead-letter queues that it does not take for its own and that are used late enough."""
    assert made.names == {queue: sqs_name(made.prefix, queue) for queue in QUEUES}
    assert len(made.names["q" * 100]) == NAME_CHARS_MAX
    assert await names_at_sqs(client, made.prefix) == sorted(made.names.values())
    assert await names_at_sqs(client, f"dlq-{made.prefix}") == sorted(made.dead_names.values())
    for queue, name in made.names.items():
        policy = json.loads((await attributes(client, name))["RedrivePolicy"])
        assert policy["deadLetterTargetArn"].endswith(f":{made.dead_names[queue]}")
        assert policy["maxReceiveCount"] >= RECEIVES_LEAST


def run_a_thousand(made: Made, stack: Stack, watched: Watched, journal: Path) -> list[str]:
    """The ids of jobs that API, relay and a worker have brought to their end, each started once."""
    served = QUEUES[:2]
    stack.settings = stack.settings.model_copy(
        update={
            "transport": "sqs",
            "sqs_endpoint_url": watched.url,
            "sqs_prefix": made.prefix,
            "queues": ",".join(served),
            **PATIENT,
        }
    )
    stack.api()
    stack.relay()
    stack.worker(["tests.handlers.steps"])
    caller = Client(stack.api_url)
    wait_until(lambda: caller.http.get("/readyz").json()["status"] == "ok", 60, what="relay, worker and SQS together")

    began = time.monotonic()
    plans = [{"journal": str(journal)}] * (JOBS // len(served))
    ids = [job_id for queue in served for job_id in caller.submit_all("test.steps", plans, queue=queue)]
    wait_until(lambda: journal_of(journal).count("start") >= JOBS, JOBS_SECONDS_MAX, what="a thousand starts")
    print(f"{JOBS} jobs in {time.monotonic() - began:.1f} s; calls: {dict(watched.operations)}")
    assert {caller.wait_for(job_id, "done")["state"] for job_id in ids} == {"done"}
    assert journal_of(journal).count("start") == JOBS, "each started once"
    return ids
