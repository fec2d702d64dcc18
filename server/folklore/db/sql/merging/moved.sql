-- The memories that moved here at :at for the reason :reason, and are still here.
select r.memory_id as id
from revisions r
where r.namespace_id = :namespace::uuid and r.action = 'move' and r.reason = :reason::text
    and r.changed_at = :at::timestamptz
order by r.memory_id
