-- :keys idempotency keys of a batch; of each that was used, the memory that answered and a digest of what was asked. Those
-- that came with an import, or before every key stood in idempotency_keys, are told by their memory alone.
select k.key, m.id, m.forgotten_at is not null as forgotten, k.request
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])
union all
select m.idempotency_key, m.id, m.forgotten_at is not null, coalesce(m.key_request, m.digest)
from memories m
where m.namespace_id = :namespace::uuid and m.idempotency_key = any(:keys::text[])
    and not exists (
        select from idempotency_keys k where k.namespace_id = :namespace::uuid and k.key = m.idempotency_key
    )
