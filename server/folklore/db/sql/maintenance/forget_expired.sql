-- Forget up to :batch expired memories, each with a revision. Recall has hidden them since they expired
-- (visible.sql).
with expired as materialized (
    select m.namespace_id, m.id, m.revision
    from memories m
    where m.namespace_id = :namespace::uuid and m.expires_at <= :now::timestamptz
        and {m.ends_at} <= :now::timestamptz and m.forgotten_at is null
    order by m.id
    limit :batch::integer
    for update skip locked
),
kept as (
    insert into revisions (namespace_id, memory_id, revision, action, author, changed_at, before)
    select :namespace::uuid, expired.id, expired.revision, 'expire', 'folklore', :now::timestamptz,
        '{"forgotten_at": null}'
    from expired
)
update memories m
set forgotten_at = :now::timestamptz, updated_at = :now::timestamptz, revision = m.revision + 1
from expired
where m.namespace_id = :namespace::uuid and m.id = expired.id
returning m.id
