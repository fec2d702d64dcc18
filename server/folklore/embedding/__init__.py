"""Models that embed texts, and rerankers: the protocol, and what makes them of settings."""

from folklore.embedding.factory import (
    MINILM as MINILM,
    build_embedder as build_embedder,
    changed_settings as changed_settings,
    configured_choice as configured_choice,
    configured_embedder as configured_embedder,
    configured_reranker as configured_reranker,
    fetch_model as fetch_model,
)
from folklore.embedding.model_profiles import passage_rule as passage_rule
from folklore.embedding.protocol import (
    PROBE as PROBE,
    SAME_MODEL as SAME_MODEL,
    Embedder as Embedder,
    Model as Model,
    ModelChoice as ModelChoice,
    Reranker as Reranker,
)
