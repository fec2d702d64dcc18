-- Forget, softly, up to :batch memories whose time is over, each with a revision. Nobody saw them any more (visible.sql).
with over as materialized (
    select m.namespace_id, m.id, m.revision
    from memories m
    where m.namespace_id = :namespace::uuid and m.expires_at <= :now::timestamptz and m.forgotten_at is null
    order by m.id
    limit :batch::integer
    for update skip locked
),
kept as (
    insert into revisions (namespace_id, memory_id, revision, action, author, changed_at, before)
    select :namespace::uuid, over.id, over.revision, 'expire', 'upkeep', :now::timestamptz, '{"forgotten_at": null}'
    from over
)
update memories m
set forgotten_at = :now::timestamptz, updated_at = :now::timestamptz, revision = m.revision + 1
from over
where m.namespace_id = :namespace::uuid and m.id = over.id
returning m.id
