-- The vector of a memory in :model, null while its embedding is pending, and the passages of a long text in order, each
-- as {begin, end, length}, with their cosines to the question :query. (Scalar subqueries: a join would cost a short text
-- as much.)
left join lateral (
    select v.vector, v.length,
        case when v.passages > 0 then (
            select array_agg(array[p.begins, p.ends, p.length] order by p.passage)
            from embeddings p
            where p.namespace_id = member.namespace_id and p.model_id = :model::uuid and p.memory_id = member.id
                and p.passage > 0
        ) end as passages,
        case when v.passages > 0 then (
            select array_agg((-(p.vector <#> :query::halfvec))::real order by p.passage)
            from embeddings p
            where p.namespace_id = member.namespace_id and p.model_id = :model::uuid and p.memory_id = member.id
                and p.passage > 0
        ) end as cosines
    from embeddings v
    where v.namespace_id = member.namespace_id and v.model_id = :model::uuid and v.memory_id = member.id
        and v.passage = 0
-- include unaltered
    limit 1
) e on true
