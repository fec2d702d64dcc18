"""Folklore on a system that does not tell whose a connection is: `python -m tests.untold serve --http`."""

from folklore.cli.main import main
from folklore.server.application import peers

if __name__ == "__main__":
    peers.user_at = lambda *_: None
    assert not peers.is_told()
    main()
