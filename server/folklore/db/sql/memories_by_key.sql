-- :keys idempotency keys of a batch; a key that was used before gives the memory it made then.
select idempotency_key, id, forgotten_at is not null as forgotten
from memories
where namespace_id = :namespace::uuid and idempotency_key = any(:keys::text[])
