    m.forgotten_at is null
    and m.superseded_at is null
    and (m.expires_at is null or m.expires_at > :now::timestamptz)
    and (m.quality is null or m.quality >= :quality_floor::real)
    -- What upkeep derived from others: as in visible.sql.
    and (m.trust <> 'derived' or m.metadata->>'members' = (
        select count(*)::text
        from relations r
        join memories o on o.namespace_id = r.namespace_id and o.id = r.to_id
        where r.namespace_id = m.namespace_id and r.from_id = m.id and r.type = 'derived_from'
            and o.forgotten_at is null and o.superseded_at is null and o.updated_at <= m.updated_at
            and (o.expires_at is null or o.expires_at > :now::timestamptz)))
