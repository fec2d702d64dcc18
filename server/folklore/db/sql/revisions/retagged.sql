-- The memories that the last call of a renaming of tags changed, named by its :reason, unless that was undone since.
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
