-- The memories that have an id, the text (in force) or an idempotency key of a batch. One lookup in an index for each; a
-- condition with alternatives would read the namespace for every batch. asked: found by a key.
select m.id, m.digest, null::text as idempotency_key, m.live_digest is not null as alive, false as asked
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
