select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
where r.namespace_id = :namespace::uuid and r.memory_id = :id::uuid and r.undoes is null
    and r.action <> 'move'  -- to another namespace, which is no change of the memory
    and not exists (
        select from revisions u
        where u.namespace_id = :namespace::uuid and u.memory_id = :id::uuid and u.undoes = r.revision
    )
order by r.revision desc
limit 1
