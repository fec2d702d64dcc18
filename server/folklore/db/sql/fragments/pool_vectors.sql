-- The vector of a memory in :model, null while its embedding is pending, and the passages of a long text in order, with
-- their cosines to the question :query.
left join lateral (
    select v.vector, v.length, v.passages
    from embeddings v
    where v.namespace_id = member.namespace_id and v.model_id = :model::uuid and v.memory_id = member.id
        and v.passage = 0
    limit 1
) e on true
left join lateral (
    select array_agg(v.begins order by v.passage) as begins, array_agg(v.ends order by v.passage) as ends,
        array_agg(v.length order by v.passage) as lengths,
        array_agg((-(v.vector <#> :query::halfvec))::real order by v.passage) as cosines
    from embeddings v
    where e.passages > 0 and v.namespace_id = member.namespace_id and v.model_id = :model::uuid
        and v.memory_id = member.id and v.passage > 0
) part on true
