-- True for a memory m that is no reflection, or whose members are all visible and unchanged. A count, so that the
-- planner does not first build the set of all such memories.
    and (m.trust <> 'derived' or m.metadata->>'members' = (
        select count(*)::text
        from relations r
        join memories o on o.namespace_id = r.namespace_id and o.id = r.to_id
        where r.namespace_id = m.namespace_id and r.from_id = m.id and r.type = 'derived_from'
            and o.forgotten_at is null and o.superseded_at is null and o.updated_at <= m.updated_at
            and ({o.ends_at} is null or {o.ends_at} > :now::timestamptz)))
