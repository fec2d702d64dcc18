-- name: copy. Copy the relations of the memories :ids to the memory :to, in its place; not those between :ids and
-- :to, and not those that say what superseded what. A relation that exists stays as it is.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, copied.from_id, copied.type, copied.to_id, max(copied.strength), :author::text,
    :now::timestamptz
from (
    select case when r.from_id = any(:ids::uuid[]) then :to::uuid else r.from_id end as from_id, r.type,
        case when r.to_id = any(:ids::uuid[]) then :to::uuid else r.to_id end as to_id, r.strength
    from (
        select f.* from relations f where f.namespace_id = :namespace::uuid and f.from_id = any(:ids::uuid[])
        union
        select t.* from relations t where t.namespace_id = :namespace::uuid and t.to_id = any(:ids::uuid[])
    ) r
    where r.type <> 'supersedes'
) copied
where copied.from_id <> copied.to_id
group by copied.from_id, copied.type, copied.to_id
order by copied.from_id, copied.type collate "C", copied.to_id
on conflict (namespace_id, from_id, type, to_id) do nothing
returning from_id, type, to_id

-- name: delete. Delete relations, :relations a JSON array; see folklore_delete_relations.
select deleted.from_id, deleted.type, deleted.to_id
from folklore_delete_relations(:namespace::uuid, :relations::jsonb) as deleted

-- name: delete_written. Delete the relations of the memory :id that :author wrote at :at; see
-- folklore_delete_relations.
select deleted.from_id, deleted.type, deleted.to_id
from folklore_delete_relations(:namespace::uuid, (
    select coalesce(jsonb_agg(jsonb_build_object('from_id', r.from_id, 'type', r.type, 'to_id', r.to_id)), '[]')
    from (
        select f.from_id, f.type, f.to_id from relations f
        where f.namespace_id = :namespace::uuid and f.from_id = :id::uuid and f.author = :author::text
            and f.created_at = :at::timestamptz
        union
        select t.from_id, t.type, t.to_id from relations t
        where t.namespace_id = :namespace::uuid and t.to_id = :id::uuid and t.author = :author::text
            and t.created_at = :at::timestamptz
    ) r
)) as deleted

-- name: insert. Write relations, :relations a JSON array; an existing one gets the new strength. Left out, and not
-- returned, are those of which one memory does not exist here or is forgotten; but a forgotten memory may supersede,
-- since an undo writes again what it superseded before.
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

-- name: read. The relations of the memories :ids in both directions, strongest first, without those to forgotten
-- memories. Each direction has its own index. Forgotten memories are excluded by a subquery for one value: for not
-- exists() the planner would read all forgotten memories of all namespaces.
select r.namespace_id, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from (
    select f.* from relations f where f.namespace_id = any(:namespaces::uuid[]) and f.from_id = any(:ids::uuid[])
    union
    select t.* from relations t where t.namespace_id = any(:namespaces::uuid[]) and t.to_id = any(:ids::uuid[])
) r
where (
        select m.id from memories m
        where m.namespace_id = r.namespace_id and m.id in (r.from_id, r.to_id)
            and m.forgotten_at is not null and m.id <> all(:ids::uuid[])
        order by m.id
        limit 1
    ) is null
order by r.strength desc, r.type, r.from_id, r.to_id
limit :fetch::integer
