-- The vector of a memory in :model, null while its embedding is pending, and the passage of a long text that is nearest
-- to the question :query, with :slope as in recall/dense.
left join lateral (
    select v.vector, v.length, v.passages
    from embeddings v
    where v.namespace_id = member.namespace_id and v.model_id = :model::uuid and v.memory_id = member.id
        and v.passage = 0
    limit 1
) e on true
left join lateral (
    select v.begins, v.ends, v.length, -(v.vector <#> :query::halfvec) as cosine
    from embeddings v
    where e.passages > 0 and v.namespace_id = member.namespace_id and v.model_id = :model::uuid
        and v.memory_id = member.id and v.passage > 0
    order by -(v.vector <#> :query::halfvec) - :slope::float8 * ln(v.length + 30.0::float8) desc, v.passage
    limit 1
) nearest on true
