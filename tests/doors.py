"""The service of an application, as a request of this user reaches it that names nothing: without a transport."""

from typing import Any, NoReturn

from folklore.app import App
from folklore.contract.requests import Result, Returns
from folklore.memory import Service
from folklore.phases import Advance
from folklore.server.current_caller import calling
from folklore.server.listener import OWN, Entrance
from folklore.server.requested import RequestedNames
from folklore.server.server_context import ServerContext


class _OwnService(Service):
    """The service whose calls come by the listener of this user."""

    async def call(
        self, request: Returns[Result], report: Advance | None = None
    ) -> Result:
        results = list[Result]()

        async def answer(*_exchange: Any) -> None:
            with calling(self.caller()):
                result = await super(_OwnService, self).call(request, report)
            results.append(result)

        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        await Entrance(RequestedNames(answer), OWN)(scope, _unused, _unused)
        return results[0]


async def _unused(*_message: Any) -> NoReturn:
    raise AssertionError("nothing is received or sent")


def own_service(app: App) -> Service:
    """The operations of this user."""
    server = ServerContext.of(app, own_namespace=app.settings.namespace)
    return _OwnService(
        server.service.memory, server.service.facts, lambda: app.caller, app.namespace
    )
