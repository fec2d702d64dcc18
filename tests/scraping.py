"""Metrics as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class Scraped:
    """The samples of one answer."""

    text: str

    def __call__(self, name: str, **labels: str) -> float:
        """Return the sum of the samples with this name and at least these labels."""
        return sum(
            sample.value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def since(self, before: Scraped, name: str, **labels: str) -> float:
        """Return how much more that sum is than it was before."""
        return self(name, **labels) - before(name, **labels)

    def labels(self) -> set[str]:
        """Every value of every label but the bounds of buckets."""
        return {
            value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
            for label, value in sample.labels.items()
            if label != "le"
        }


async def scraped(client: httpx.AsyncClient) -> Scraped:
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return Scraped(answer.text)


async def until(
    client: httpx.AsyncClient, holds: Callable[[Scraped], bool], seconds: float = 120
) -> Scraped:
    """Scrape until the condition holds; return that answer."""
    async with asyncio.timeout(seconds):
        while not holds(found := await scraped(client)):
            await asyncio.sleep(0.05)
    return found
