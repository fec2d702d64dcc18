-- Stored memories that conflict with a batch: by id, by the digest of a live text, by an idempotency key of a request
-- (`requested`). Each lookup uses its own index; one condition with several alternatives would read the whole namespace
-- for every batch.
select m.id, m.digest, null::text as key, m.live_digest is not null as live, false as requested
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
union
select m.id, m.digest, null, m.live_digest is not null, false
from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])
union
select m.id, m.digest, k.key, m.live_digest is not null, true
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])
