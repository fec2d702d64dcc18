-- :links a JSON array of keys; `request` (hexadecimal) is the digest of the request that the memory answered. A key is
-- written if its memory exists and no other memory has the key. Returns the places of all.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (place integer, memory_id uuid, key text, request text)
),
written as (
    insert into idempotency_keys (namespace_id, key, memory_id, request)
    select :namespace::uuid, g.key, g.memory_id, decode(g.request, 'hex')
    from given g
    where exists (select from memories m where m.namespace_id = :namespace::uuid and m.id = g.memory_id)
    order by g.key collate "C"
    on conflict (namespace_id, key) do nothing
)
select place from given
