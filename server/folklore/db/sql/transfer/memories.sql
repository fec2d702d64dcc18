-- The whole memories of one namespace, forgotten and superseded ones too, in an order that every database repeats.
-- :ids only these, null for all. :model whose vectors to read, null for none; a pending embedding is null, and so are
-- passages of a text without any.
-- idempotency_key is the first key of a request to store the present text; `keys` are all others, at most as many as a
-- line may have (MAX_KEYS of memory/transfer/json_lines.py).
select
    m.id, {m.fields}, m.position, m.author, m.agent, m.quality, m.trust, m.created_at, m.updated_at, m.forgotten_at,
    m.superseded_at, m.superseded_by, m.last_recalled_at, m.recall_count, m.confirmed_count, m.revision,
    own.key as idempotency_key,
    (
        select jsonb_object_agg(k.key, encode(k.request, 'hex'))
        from (
            select k.key, k.request
            from idempotency_keys k
            where k.namespace_id = :namespace::uuid and k.memory_id = m.id and k.key is distinct from own.key
            order by k.key collate "C"
            limit 300
        ) k
    ) as keys,
    e.vector,
    (
        select array_agg(array[p.begins, p.ends] order by p.passage)
        from embeddings p
        where e.passages > 0 and p.namespace_id = :namespace::uuid and p.model_id = :model::uuid and p.memory_id = m.id
            and p.passage > 0
    ) as ranges,
    (
        select array_agg(p.vector order by p.passage)
        from embeddings p
        where e.passages > 0 and p.namespace_id = :namespace::uuid and p.model_id = :model::uuid and p.memory_id = m.id
            and p.passage > 0
    ) as passages
from memories m
cross join lateral (
    select min(k.key collate "C") as key
    from idempotency_keys k
    where k.namespace_id = :namespace::uuid and k.memory_id = m.id and k.request = m.digest
) own
left join embeddings e on e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = m.id
    and e.passage = 0
where m.namespace_id = :namespace::uuid and (:ids::uuid[] is null or m.id = any(:ids::uuid[]))
order by m.created_at, m.id
