-- A cursor over the revisions of one namespace, in an order that every database repeats.
declare folklore_revisions no scroll cursor for
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
where r.namespace_id = :namespace::uuid
order by r.memory_id, r.revision
