"""Search in the console as a person types: from the key to the answer on the screen, and the scroll of 1,000 results.

    python -m benchmarks.console                       # 100,000 memories on an embedded engine in a temporary home
    python -m benchmarks.console --home ~/bench        # keeps them there for the next run

The memories are made up (benchmarks/made_up.py). Chromium types questions at the pace of a quick typist. `key_ms` is
the time from the key to the paint of the answer to its text or to a later one. Next to it, in alternation and without a
browser: the page's request, the same recall over the HTTP API, and a trivial request of the same server. On a busy
machine compare with the trivial request. It needs playwright and chromium.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

from benchmarks.made_up import memories, questions
from benchmarks.throughput import Processes, server
from folklore.engine import Engine

_ARGUMENTS = (
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ),
    *("--no-sandbox", "--disable-gpu"),
)
_KEY_MS = 140
_LONG_TASK_MS = 50
_WHEEL = 600
_JSON = {"accept": "application/json"}
# Runs in the page: notes the time and text of each key, and when an answer is painted, the text that it answers.
_WATCH = """
() => {
  performance.setResourceTimingBufferSize(100000);
  window.keys = [];
  const input = document.getElementById("q");
  input.addEventListener("input", (event) => keys.push({ text: input.value, at: event.timeStamp, shown: null }));
  new MutationObserver(() => {
    const answers = performance.getEntriesByType("resource").filter((entry) => entry.initiatorType === "fetch");
    const text = new URL(answers.at(-1).name).searchParams.get("q");
    const place = keys.findLastIndex((key) => key.text === text);
    requestAnimationFrame(() => setTimeout(() => {
      const now = performance.now();
      for (const key of keys.slice(0, place + 1)) key.shown ??= now;
    }));
  }).observe(document.getElementById("answer"), { childList: true });
}
"""
_FETCHES = """
() => performance.getEntriesByType("resource").filter((entry) => entry.initiatorType === "fetch")
  .map((entry) => [entry.startTime, entry.responseEnd])
"""
_TASK = "ThreadControllerImpl::RunTask"
_AT_END = "() => scrollY + innerHeight >= document.documentElement.scrollHeight - 2"


def fill(home: Path, count: int) -> None:
    """Import the made-up memories, unless the home has them from an earlier run."""
    done = home / f"console-{count}"
    if done.exists():
        return
    home.mkdir(parents=True, exist_ok=True)
    lines = home / "made_up.jsonl"
    with lines.open("w") as file:
        file.writelines(f"{json.dumps(memory)}\n" for memory in memories(count))
    print(f"Importing {count:,} memories, once: some minutes.", file=sys.stderr)
    command = [sys.executable, "-m", "folklore", "import", "--yes", str(lines)]
    subprocess.run(
        command,
        env={**os.environ, "FOLKLORE_HOME": str(home)},
        check=True,
        stdout=sys.stderr,
    )
    lines.unlink()
    done.touch()


def figures(milliseconds: Iterable[float]) -> dict[str, float]:
    """Return median, 95th percentile, maximum and number of measured times."""
    times = sorted(milliseconds)
    p95 = times[min(int(0.95 * len(times)), len(times) - 1)]
    return {
        "p50": round(statistics.median(times), 1),
        "p95": round(p95, 1),
        "max": round(times[-1], 1),
        "count": len(times),
    }


def requests(
    url: str, asked: Sequence[str], project: str | None, processes: Processes
) -> dict[str, Any]:
    """Time the request of the page, a recall over the API and a trivial request, in turns.

    `server_ms` and `postgres_ms` are the processor times of a page there: on an idle machine they limit the answer.
    """
    times: dict[str, list[float]] = {
        "trivial": [],
        "recall": [],
        "page": [],
        "list": [],
    }
    scope = {"project": project} if project else {}
    recalled = {"namespaces": [project or "*"], "limit": 20, "counted": False}
    with httpx.Client(base_url=url, headers=_JSON) as client:
        client.post("/sign-in", data={"token": ""}, headers={"origin": url})
        for turn, text in enumerate(asked):
            calls: Mapping[str, Any] = {
                "trivial": lambda: client.get("/healthz"),
                "recall": lambda text=text: client.post(
                    "/api/recall", json={"query": text, **recalled}
                ),
                "page": lambda text=text: client.get(
                    "/search", params={"q": text, **scope}
                ),
                "list": lambda: client.get("/search", params=scope),
            }
            for name, call in calls.items():
                began = perf_counter()
                call().raise_for_status()
                if turn:  # the first turn warms up
                    times[name].append((perf_counter() - began) * 1e3)
        before = processes.seconds()
        for text in asked:
            client.get("/search", params={"q": text, **scope})
        spent = [
            (now - then) / len(asked)
            for now, then in zip(processes.seconds(), before, strict=True)
        ]
    found: dict[str, Any] = {name: figures(values) for name, values in times.items()}
    ratios = [
        page / recall
        for page, recall in zip(times["page"], times["recall"], strict=True)
    ]
    return found | {
        "page_over_recall": round(statistics.median(ratios), 2),
        "server_ms": round(spent[0] * 1e3, 1),
        "postgres_ms": round(spent[1] * 1e3, 1),
    }


def typing(
    page: Any, url: str, asked: Sequence[str], project: str | None
) -> dict[str, Any]:
    """Type the questions in the browser, one after the other, and return the times from key to paint."""
    page.goto(f"{url}/search" + (f"?project={project}" if project else ""))
    page.evaluate(_WATCH)
    for text in asked:
        page.fill("#q", "")
        page.type("#q", text, delay=_KEY_MS)
        page.wait_for_function(
            "() => keys.every((key) => key.shown !== null)", timeout=30_000
        )
    keys = page.evaluate("() => keys.map((key) => key.shown - key.at)")
    fetches = sorted(page.evaluate(_FETCHES))
    overlaps = sum(later[0] < former[1] - 0.1 for former, later in pairwise(fetches))
    within = sum(key <= 100 for key in keys) / len(keys)
    return {
        "key_ms": figures(keys),
        "within_100_ms": round(within, 3),
        "requests": len(fetches),
        "requests_at_the_same_time": overlaps,
        "request_ms": figures(end - begin for begin, end in fetches),
    }


def scrolling(browser: Any, page: Any, url: str) -> dict[str, Any]:
    """Scroll through 1,000 results and return the tasks of the page's main thread in the browser's trace."""
    page.goto(f"{url}/search?limit=1000")
    page.wait_for_load_state("networkidle")
    shown = page.locator("[data-entry]").count()
    page.mouse.move(640, 600)
    browser.start_tracing(
        page=page, categories=["toplevel", "devtools.timeline", "__metadata"]
    )
    while not page.evaluate(_AT_END):
        page.mouse.wheel(0, _WHEEL)
        page.wait_for_timeout(16)
    pixels = page.evaluate("() => Math.round(scrollY)")
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name"
        and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        event
        for event in events
        if event.get("name") == _TASK and (event["pid"], event["tid"]) in mains
    ]
    # Of a busy machine, the time that the thread had a processor is what the page takes.
    wall, busy = (
        [event[name] / 1e3 for event in tasks if name in event]
        for name in ("dur", "tdur")
    )
    return {
        "results": shown,
        "pixels": pixels,
        "task_ms": figures(wall),
        "long": sum(time > _LONG_TASK_MS for time in wall),
        "task_processor_ms": figures(busy),
        "long_by_processor": sum(time > _LONG_TASK_MS for time in busy),
    }


def measure(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a server with the memories."""
    fill(home, options.memories)
    asked = questions(options.questions)
    sync_api = importlib.import_module("playwright.sync_api")
    with server(home) as (port, process), sync_api.sync_playwright() as playwright:
        url = f"http://127.0.0.1:{port}"
        found: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
        processes = Processes(process.pid, home)
        found["requests"] = {
            scope: requests(url, asked, project, processes)
            for scope, project in options.scopes.items()
        }
        browser = playwright.chromium.launch(
            executable_path=options.browser, args=_ARGUMENTS
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{url}/sign-in")
        page.click("form button")
        found["typing"] = {
            scope: typing(page, url, asked, project)
            for scope, project in options.scopes.items()
        }
        found["scrolling"] = scrolling(browser, page, url)
        browser.close()
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument(
        "--home",
        type=Path,
        help="keep the engine and its memories there for the next run",
    )
    parser.add_argument(
        "--browser", default="/usr/bin/chromium", help="path of chromium"
    )
    options = parser.parse_args()
    # Everything, which is searched exactly, and the largest project, which has an index.
    options.scopes = {"all projects": None, "shop (60 %)": "shop"}
    with tempfile.TemporaryDirectory(
        prefix="folklore bench ", ignore_cleanup_errors=True
    ) as temporary:
        home = options.home or Path(temporary)
        try:
            print(json.dumps(measure(home, options), indent=2))
        finally:
            if options.home is None:
                Engine(home).stop()


if __name__ == "__main__":
    main()
