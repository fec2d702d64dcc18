-- The memories that a merge at :at superseded, whether or not that was undone since.
select r.memory_id as id
from revisions r
where r.namespace_id = :namespace::uuid and r.changed_at = :at::timestamptz
    and r.action = 'supersede' and r.reason = 'merged'
order by r.memory_id
