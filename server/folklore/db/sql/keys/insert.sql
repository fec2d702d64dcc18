-- Record which memory answered a request under a key; :keys, :ids and :requests (hexadecimal) belong together. In the
-- order of keys, so that two batches cannot deadlock.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :namespace::uuid, g.key, g.id, decode(g.request, 'hex')
from unnest(:keys::text[], :ids::uuid[], :requests::text[]) as g (key, id, request)
order by g.key collate "C"
