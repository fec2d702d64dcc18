-- The memories of one namespace whole, forgotten and superseded ones too, in an order that any database repeats.
-- :ids only these, null for all of them. idempotency_key is the first key of a request to store the text as it is now;
-- `keys` are all others, each with the digest of its request, as many as a line may hold (memory/transfer).
select
    m.id, {m.fields}, m.position, m.author, m.agent, m.quality, m.trust, m.created_at, m.updated_at, m.forgotten_at,
    m.superseded_at, m.superseded_by, m.last_recalled_at, m.recall_count, m.confirmed_count, m.revision,
    own.key as idempotency_key,
    (
        select jsonb_object_agg(k.key, encode(k.request, 'hex'))
        from (
            select k.key, k.request
            from idempotency_keys k
            where k.namespace_id = :namespace::uuid and k.memory_id = m.id
                and k.key is distinct from own.key
            order by k.key collate "C"
            limit 300
        ) k
    ) as keys
from memories m
cross join lateral (
    select min(k.key collate "C") as key
    from idempotency_keys k
    where k.namespace_id = :namespace::uuid and k.memory_id = m.id and k.request = m.digest
) own
where m.namespace_id = :namespace::uuid and (:ids::uuid[] is null or m.id = any(:ids::uuid[]))
order by m.created_at, m.id
