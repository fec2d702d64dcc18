-- The idempotency keys among :keys that were used: the memory that answered, and the digest of the request.
select k.key, m.id, m.forgotten_at is not null as forgotten, k.request
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])
