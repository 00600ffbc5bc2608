"""A small help desk: where `ticket.triage` looks customers up and files its results.

It honours idempotency keys as draft-ietf-httpapi-idempotency-key-header asks, and counts every call it gets,
so that an effect performed twice cannot hide. It keeps everything in memory.

    python -m examples.sink --port 8090      prints `ready http://127.0.0.1:8090`; port 0 takes a free one
"""

from __future__ import annotations

import argparse
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Header, HTTPException, Request, Response

CUSTOMERS_FILE = Path(__file__).with_name("customers.json")
BACKLOG = 256


class Desk:
    """What the desk has on file and how often it was asked.

    `calls` counts filings by idempotency key, repeated ones included; `look_ups` counts reads by customer.
    """

    def __init__(self) -> None:
        self.customers: dict[str, dict[str, Any]] = json.loads(CUSTOMERS_FILE.read_text(encoding="utf-8"))
        self.filings: dict[str, dict[str, Any]] = {}
        self.calls: Counter[str] = Counter()
        self.look_ups: Counter[str] = Counter()

    def file(self, key: str, document: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The filing under `key` and whether it was there before. Raises `HTTPException` 422 for another document."""
        self.calls[key] += 1
        known = self.filings.get(key)
        if known is None:
            known = {"filing_id": f"F-{len(self.filings) + 1:05d}", "document": document}
            self.filings[key] = known
            return known, False
        if known["document"] != document:
            raise HTTPException(422, "this idempotency key was used with another document")
        return known, True

    def counts(self) -> dict[str, Any]:
        """What was counted. `duplicates` are calls beyond the first of their key; `filings_by_ticket` counts keys."""
        return {
            "filings": len(self.filings),
            "calls": self.calls.total(),
            "duplicates": self.calls.total() - len(self.calls),
            "calls_by_key": dict(self.calls),
            "look_ups_by_customer": dict(self.look_ups),
            "filings_by_ticket": dict(Counter(filing["document"].get("ticket") for filing in self.filings.values())),
        }


def create() -> FastAPI:
    """The desk's HTTP surface."""
    app = FastAPI(title="Help desk", openapi_url=None)
    desk = Desk()

    @app.get("/customers/{customer}")
    async def customer(customer: str) -> dict[str, Any]:
        desk.look_ups[customer] += 1
        known = desk.customers.get(customer)
        if known is None:
            raise HTTPException(404, "no such customer")
        return known

    @app.post("/filings", status_code=201)
    async def file(
        request: Request,
        response: Response,
        idempotency_key: Annotated[str, Header(min_length=1, max_length=255)],
    ) -> dict[str, Any]:
        filing, replayed = desk.file(idempotency_key, await request.json())
        if replayed:
            response.status_code = 200
            response.headers["Idempotent-Replayed"] = "true"
        return {"filing_id": filing["filing_id"]}

    @app.get("/counts")
    async def counts() -> dict[str, Any]:
        return desk.counts()

    _ = (customer, file, counts)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8090)
    arguments = parser.parse_args()
    listener = socket.create_server((arguments.host, arguments.port), backlog=BACKLOG)
    host, port = listener.getsockname()[:2]
    print(f"ready http://{host}:{port}", flush=True)
    uvicorn.Server(uvicorn.Config(create(), log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
