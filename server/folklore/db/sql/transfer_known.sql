-- Which memories stand in the way of a batch: by id, by the digest of a living text, by idempotency key. Each looked up by
-- its own index; one condition of three alternatives would read the namespace for every batch.
select m.id, m.digest, m.idempotency_key, m.live_digest is not null as alive
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
union
select m.id, m.digest, m.idempotency_key, m.live_digest is not null
from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])
union
select m.id, m.digest, m.idempotency_key, m.live_digest is not null
from memories m
where m.namespace_id = :namespace::uuid and m.idempotency_key = any(:keys::text[])
