-- :keys, :ids and :requests (hexadecimal) belong together: what was asked under a key, and the memory that answers. In the
-- order of the keys, so that two batches never wait in a ring.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :namespace::uuid, g.key, g.id, decode(g.request, 'hex')
from unnest(:keys::text[], :ids::uuid[], :requests::text[]) as g (key, id, request)
order by g.key collate "C"
