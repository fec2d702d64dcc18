-- name: count
select r.namespace_id, r.memory_id, count(*) as revisions
from revisions r
where r.namespace_id = any(:namespaces::uuid[]) and r.memory_id = any(:ids::uuid[])
group by r.namespace_id, r.memory_id

-- name: insert. Write a revision for each of the memories :ids, with the present values of the columns :fields,
-- before they change. :reasons and :undoes are JSON objects by id.
insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
select :namespace::uuid, m.id, m.revision, :action::text, :author::text, :agent::text, :now::timestamptz,
    :reasons::jsonb ->> m.id::text, (:undoes::jsonb ->> m.id::text)::integer,
    (select coalesce(jsonb_object_agg(held.key, held.value), '{}') from jsonb_each(
-- include changeable
    ) as held where held.key = any(:fields::text[]))
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: last. The last change of a memory that an undo takes back; with :redo, the last undo that no other change
-- followed.
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
where r.namespace_id = :namespace::uuid and r.memory_id = :id::uuid
    and not exists (
        select from revisions u
        where u.namespace_id = :namespace::uuid and u.memory_id = :id::uuid and u.undoes = r.revision
    )
    and case when not :redo::boolean then r.action not in ('undo', 'move')  -- a move is no change of the memory
    else (r.action = 'undo' or r.undoes = 0) and not exists (
        select from revisions later
        where later.namespace_id = :namespace::uuid and later.memory_id = :id::uuid and (
            later.revision > r.revision and later.undoes is null and later.action <> 'move'
            or later.revision = r.undoes and later.undoes = 0  -- the undone change had forgotten a store: it was redone
        )
    ) end
order by r.revision desc
limit 1

-- name: merged. The memories that a merge at :at superseded, whether or not that was undone since.
select r.memory_id as id
from revisions r
where r.namespace_id = :namespace::uuid and r.changed_at = :at::timestamptz
    and r.action = 'supersede' and r.reason = 'merged'
order by r.memory_id

-- name: read
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
where r.namespace_id = :namespace::uuid and r.memory_id = :id::uuid
order by r.revision desc

-- name: restored. The revisions by which forgetting :successor at :at restored what it had superseded, itself or
-- through memories that are forgotten; of memories that did not change since.
with recursive chain as (
    select :successor::uuid as id
    union
    select m.id
    from chain
    join memories m on m.namespace_id = :namespace::uuid and m.superseded_by = chain.id
)
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
join memories m on m.namespace_id = r.namespace_id and m.id = r.memory_id
where r.namespace_id = :namespace::uuid and r.changed_at = :at::timestamptz and r.action = 'restore'
    and (r.before ->> 'superseded_by')::uuid in (select id from chain)
    and m.namespace_id = :namespace::uuid and m.revision = r.revision + 1
order by r.memory_id

-- name: retagged. The memories that the last call of a renaming of tags changed, named by its :reason, unless that
-- was undone since.
with renamed as materialized (
    select r.memory_id, r.revision, r.changed_at
    from revisions r
    where r.namespace_id = :namespace::uuid and r.action = 'retag' and r.reason = :reason::text
        and not exists (
            select from revisions u
            where u.namespace_id = :namespace::uuid and u.memory_id = r.memory_id and u.undoes = r.revision
        )
)
select m.id, renamed.revision, m.revision = renamed.revision + 1 as unchanged
from renamed
join memories m on m.namespace_id = :namespace::uuid and m.id = renamed.memory_id
where renamed.changed_at = (select max(changed_at) from renamed) and m.forgotten_at is null
order by m.id

-- name: superseded. The memories that the memory :by superseded at :at for the reason :reason, unless that was undone
-- since.
select m.id, m.digest, r.revision
from memories m
join revisions r on r.namespace_id = :namespace::uuid and r.memory_id = m.id
where m.namespace_id = :namespace::uuid and m.superseded_by = :by::uuid and r.action = 'supersede'
    and r.reason = :reason::text and r.changed_at = :at::timestamptz
    and not exists (
        select from revisions u where u.namespace_id = :namespace::uuid and u.memory_id = m.id and u.undoes = r.revision
    )
order by m.id
