-- name: find. The idempotency keys among :keys that were used: the memory that answered, and the digest of the
-- request.
select k.key, m.id, m.forgotten_at is not null as forgotten, k.request
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])

-- name: insert. Record which memory answered a request under a key; :keys, :ids and :requests (hexadecimal) belong
-- together. In the order of keys, so that two batches cannot deadlock.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :namespace::uuid, g.key, g.id, decode(g.request, 'hex')
from unnest(:keys::text[], :ids::uuid[], :requests::text[]) as g (key, id, request)
order by g.key collate "C"

-- name: release. Release those of :keys whose memory is forgotten; see folklore_release_keys.
select folklore_release_keys(:namespace::uuid, :keys::text[])
