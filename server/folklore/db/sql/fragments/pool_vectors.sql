-- The vector of a memory in :model, null while its embedding is pending.
left join lateral (
    select v.vector, v.length
    from embeddings v
    where v.namespace_id = member.namespace_id and v.model_id = :model::uuid and v.memory_id = member.id
-- include unaltered
    limit 1
) e on true
