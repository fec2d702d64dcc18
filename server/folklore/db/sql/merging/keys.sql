-- A key that :into has too keeps its meaning there.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :into::uuid, k.key, k.memory_id, k.request
from idempotency_keys k
where k.namespace_id = :namespace::uuid and k.memory_id = any(:ids::uuid[])
on conflict (namespace_id, key) do nothing
