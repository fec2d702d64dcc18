-- Included by recall/pool.sql: the vector of a member in :model, null where there is none yet.
left join lateral (
    select v.vector, v.length
    from embeddings v
    where v.namespace_id = member.namespace_id and v.model_id = :model::uuid and v.memory_id = member.id
    limit 1
) e on true
