-- :keys are free for others if whoever has them is forgotten, as a forgotten text is.
update memories m
set idempotency_key = null, key_request = null
where m.namespace_id = :namespace::uuid and m.idempotency_key = any(:keys::text[]) and m.forgotten_at is not null
