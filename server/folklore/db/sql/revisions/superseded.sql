-- The memories that the memory :by superseded at :at for the reason :reason, unless that was undone since.
select m.id, m.digest, r.revision
from memories m
join revisions r on r.namespace_id = :namespace::uuid and r.memory_id = m.id
where m.namespace_id = :namespace::uuid and m.superseded_by = :by::uuid and r.action = 'supersede'
    and r.reason = :reason::text and r.changed_at = :at::timestamptz
    and not exists (
        select from revisions u where u.namespace_id = :namespace::uuid and u.memory_id = m.id and u.undoes = r.revision
    )
order by m.id
