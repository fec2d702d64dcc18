"""The field `embedding` of a memory line: a vector in base64, and what tells the model that made it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from folklore.db.stores.transfer_rows import HALF_BYTES, Carried

FIELD = "embedding"


def _half_floats(value: object) -> object:
    try:
        raw = b64decode(value, validate=True) if isinstance(value, str) else b"?"
    except ValueError:
        raise ValueError("is not base64") from None
    if len(raw) % HALF_BYTES:
        raise ValueError("is not base64 of half floats, two bytes each")
    return raw


class EmbeddingField(BaseModel):
    """What the field holds, in the order it is written."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    provider: str
    name: str
    dimensions: Annotated[int, Field(ge=1)]
    revision: str = ""
    query_prefix: str = ""
    document_prefix: str = ""
    vector: Annotated[bytes, BeforeValidator(_half_floats)]

    @property
    def carried(self) -> Carried:
        """The vector, of which nothing is known yet but that it is one of numbers."""
        return Carried(**self.model_dump())


def embedding_field(carried: Carried) -> dict[str, Any]:
    """A carried vector as the field, without what is empty."""
    told = {name: getattr(carried, name) for name in EmbeddingField.model_fields}
    return {name: given for name, given in told.items() if given} | {"vector": b64encode(carried.vector).decode()}
