-- Write relations, :relations a JSON array; an existing one gets the new strength. Left out, and not returned, are
-- those of which one memory does not exist here or is forgotten; but a forgotten memory may supersede, since an undo
-- writes again what it superseded before.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, d.from_id, d.type, d.to_id, d.strength, :author::text, :now::timestamptz
from jsonb_to_recordset(:relations::jsonb) as d (from_id uuid, type text, to_id uuid, strength real)
where exists (
        select from memories f where f.namespace_id = :namespace::uuid and f.id = d.from_id
            and (f.forgotten_at is null or d.type = 'supersedes'))
    and exists (
        select from memories t where t.namespace_id = :namespace::uuid and t.id = d.to_id and t.forgotten_at is null)
order by d.from_id, d.type collate "C", d.to_id
on conflict (namespace_id, from_id, type, to_id) do update set strength = excluded.strength
returning from_id, type, to_id, (xmax = 0) as is_new
