-- The memories that were superseded at :at for the reason :reason, and still are.
select m.id, m.digest, r.revision
from revisions r
join memories m on m.namespace_id = :namespace::uuid and m.id = r.memory_id and m.superseded_at = :at::timestamptz
where r.namespace_id = :namespace::uuid and r.action = 'supersede' and r.reason = :reason::text
    and r.changed_at = :at::timestamptz
order by m.id
