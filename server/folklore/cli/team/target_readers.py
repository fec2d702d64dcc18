"""The readers of the namespaces into which an import goes."""

from collections.abc import Sequence
from dataclasses import replace

from folklore.callers import Token
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.contract.people import CallerInfo, ListTokensRequest
from folklore.contract.requests import Operations
from folklore.importers import Target
from folklore.text import names


async def with_readers(
    targets: Sequence[Target], operations: Operations, caller: CallerInfo
) -> list[Target]:
    """Add to each target what is stored in its namespace, and who can read it, as far as the caller may know."""
    namespaces = await operations.call(ListNamespacesRequest())
    tokens = await operations.call(ListTokensRequest()) if caller.owner else ()
    counts = {
        names.key(namespace.name): namespace.memories or 0 for namespace in namespaces
    }
    others = [
        token for token in tokens if token.principal.lower() != caller.principal.lower()
    ]
    owners = tuple(sorted({token.principal for token in others if token.owner}))

    def shown(target: Target) -> Target:
        if target.namespace is None:
            return target
        readers = _readers(target.namespace, caller, others)
        return replace(
            target,
            stored=counts.get(names.key(target.namespace)),
            readers=readers,
            owners=owners,
        )

    return list(map(shown, targets))


def _readers(
    namespace: str, caller: CallerInfo, tokens: Sequence[Token]
) -> tuple[str, ...]:
    if not caller.owner:
        if namespace == names.private(caller.principal):
            return ()
        return ("its team",)
    return tuple(
        sorted({token.principal for token in tokens if _opens(token, namespace)})
    )


def _opens(token: Token, namespace: str) -> bool:
    key = names.key(namespace)
    patterns = [names.key(grant.rpartition(":")[0]) for grant in token.grants]
    return any(
        key == name or (name.endswith("*") and key.startswith(name[:-1]))
        for name in patterns
    )
