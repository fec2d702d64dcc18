-- The last change of a memory that an undo takes back; with :redo, the last undo that no other change followed.
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
