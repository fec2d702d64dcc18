insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
select :into::uuid, r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
where r.namespace_id = :namespace::uuid and r.memory_id = any(:ids::uuid[])
