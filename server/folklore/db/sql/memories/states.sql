-- What a change must know of the memories :ids; :whole also what they hold, by column.
select m.id, m.revision, m.forgotten_at, m.superseded_at, m.superseded_by,
    case when :whole::boolean then
-- include changeable
    end as held
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
