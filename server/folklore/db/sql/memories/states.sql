-- The state of the memories :ids before a change; with :whole also their columns as JSON.
select m.id, m.revision, m.forgotten_at, m.superseded_at, m.superseded_by,
    case when :whole::boolean then
-- include changeable
    end as held
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
