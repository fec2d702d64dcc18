-- Forget, softly, up to :batch memories whose time is over. Nobody saw them any more (visible.sql).
with over as materialized (
    select m.id
    from memories m
    where m.namespace_id = :namespace::uuid and m.expires_at <= :now::timestamptz and m.forgotten_at is null
    order by m.id
    limit :batch::integer
    for update skip locked
)
update memories m
set forgotten_at = :now::timestamptz
from over
where m.namespace_id = :namespace::uuid and m.id = over.id
returning m.id
