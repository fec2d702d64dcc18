-- Memories after :after, by id, that were recalled or confirmed at least once, with what their quality follows
-- from.
select m.id, m.kind, m.importance, m.quality, m.recall_count as recalls, m.confirmed_count as confirmations,
    greatest(m.updated_at, m.last_recalled_at, m.confirmed_at) as used_at
from memories m
where m.namespace_id = :namespace::uuid and m.id > :after::uuid and m.forgotten_at is null
    and m.superseded_at is null and (m.recall_count > 0 or m.confirmed_count > 0)
order by m.id
limit :batch::integer
