-- Release those of :keys whose memory is forgotten, as its text is released.
delete from idempotency_keys k
using memories m
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])
    and m.namespace_id = :namespace::uuid and m.id = k.memory_id and m.forgotten_at is not null
