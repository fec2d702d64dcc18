-- :requests[i] (hexadecimal) is the digest of the request under :keys[i], which the memory :ids[i] answered. Written if
-- the memory exists and no other memory has the key.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :namespace::uuid, g.key, g.id, decode(g.request, 'hex')
from unnest(:keys::text[], :ids::uuid[], :requests::text[]) as g (key, id, request)
where exists (select from memories m where m.namespace_id = :namespace::uuid and m.id = g.id)
    and not exists (
        select from memories o where o.namespace_id = :namespace::uuid and o.idempotency_key = g.key and o.id <> g.id
    )
order by g.key collate "C"
on conflict (namespace_id, key) do nothing
