"""Package index on loopback (PEP 503) that holds a folder of files and nothing else."""

import hashlib
import html
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log no request."""


@contextmanager
def local_index(folder: Path) -> Iterator[str]:
    """Write the pages for the wheels and source archives in `folder`, and give the address of the index."""
    projects: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.iterdir()):
        if path.suffix == ".whl" or path.name.endswith(".tar.gz"):
            projects[re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower()].append(
                path
            )
    for project, paths in projects.items():
        page = folder / "simple" / project / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        links = (
            f'<a href="/{quote(path.name)}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">'
            f"{html.escape(path.name)}</a>"
            for path in paths
        )
        page.write_text("<!DOCTYPE html>\n" + "\n".join(links), encoding="utf-8")
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Silent, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
