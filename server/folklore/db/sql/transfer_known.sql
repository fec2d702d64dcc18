-- Which memories stand in the way of a batch: by id, by the digest of a living text, by idempotency key, its own or one
-- it was stored under here (`asked`). Each is looked up by its own index; one condition of several alternatives would
-- read the namespace for every batch.
select m.id, m.digest, m.idempotency_key, m.live_digest is not null as alive, false as asked
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
union
select m.id, m.digest, m.idempotency_key, m.live_digest is not null, false
from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])
union
select m.id, m.digest, m.idempotency_key, m.live_digest is not null, false
from memories m
where m.namespace_id = :namespace::uuid and m.idempotency_key = any(:keys::text[])
union
select m.id, m.digest, k.key, m.live_digest is not null, true
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])
