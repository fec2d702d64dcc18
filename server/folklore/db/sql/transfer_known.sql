-- Which memories stand in the way of a batch: by id, by the digest of a living text, by idempotency key.
select m.id, m.digest, m.idempotency_key, m.forgotten_at is null and m.superseded_at is null as alive
from memories m
where m.namespace_id = :namespace::uuid
    and (m.id = any(:ids::uuid[])
        or (m.digest = any(:digests::bytea[]) and m.forgotten_at is null and m.superseded_at is null)
        or m.idempotency_key = any(:keys::text[]))
