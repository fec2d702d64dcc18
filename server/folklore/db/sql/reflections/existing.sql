-- Every reflection, forgotten ones too, since a reflection that a person forgot is not made again. `whole`: no member
-- was changed, superseded, forgotten or erased since.
select m.id, coalesce((
        select k.key
        from idempotency_keys k
        where k.namespace_id = m.namespace_id and k.memory_id = m.id and k.request = m.digest
        order by k.key collate "C"
        limit 1
    ), '') as key, m.forgotten_at is not null as forgotten,
    coalesce(m.metadata->>'members', '') = (
        select count(*)::text
        from relations r
        join memories o on o.namespace_id = r.namespace_id and o.id = r.to_id
        where r.namespace_id = m.namespace_id and r.from_id = m.id and r.type = 'derived_from'
            and o.forgotten_at is null and o.superseded_at is null and o.updated_at <= m.updated_at
    ) as whole
from memories m
where m.namespace_id = :namespace::uuid and m.trust = 'derived'
order by m.id
