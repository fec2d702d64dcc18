-- Replaces each memory of transfer_columns that exists; its revision increases by one.
update memories m
set {d.field_updates},
    position = case when d.session is null then null else coalesce(d.position, coalesce((
        select max(s.position) + 1 from memories s where s.namespace_id = :namespace::uuid and s.session = d.session
    ), 0) + d.step) end,
    author = d.author, agent = d.agent, quality = d.quality, trust = d.trust, created_at = d.created_at,
    updated_at = :now::timestamptz, forgotten_at = d.forgotten_at, superseded_at = d.superseded_at, superseded_by = null,
    last_recalled_at = d.last_recalled_at, recall_count = d.recall_count, confirmed_count = d.confirmed_count,
    revision = m.revision + 1, digest = decode(d.digest, 'hex'), idempotency_key = d.idempotency_key,
    key_request = case when m.idempotency_key = d.idempotency_key then m.key_request end
from (
-- include transfer_columns
) d
where m.namespace_id = :namespace::uuid and m.id = d.id
returning m.id
