-- The revisions by which forgetting :successor at :at restored what it had superseded, itself or through memories that
-- are forgotten; of memories that did not change since.
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
