-- Record keys that were used in another database; the parameters are those of keys/insert. A key is left out if its memory
-- is not here, or if a memory here has it.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :namespace::uuid, g.key, g.id, decode(g.request, 'hex')
from unnest(:keys::text[], :ids::uuid[], :requests::text[]) as g (key, id, request)
where exists (select from memories m where m.namespace_id = :namespace::uuid and m.id = g.id)
order by g.key collate "C"
on conflict (namespace_id, key) do nothing
