-- :changes a JSON array, one object a memory: its id, the columns that become something else under `fields`, and the
-- digest (hex) of its text if that does. A memory that moves to another session goes to its end.
update memories m
set {n.field_updates},
    position = case
        when n.session is null then null
        when c.fields ? 'position' then n.position
        when n.session is not distinct from o.session then o.position
        else coalesce((
            select max(s.position) + 1 from memories s where s.namespace_id = :namespace::uuid and s.session = n.session
        ), 0) end,
    forgotten_at = n.forgotten_at, superseded_at = n.superseded_at, superseded_by = n.superseded_by,
    digest = coalesce(decode(c.digest, 'hex'), o.digest),
    -- What a memory was worth is not what it is worth now that it says something else.
    quality = case when c.digest is null then o.quality end,
    -- Nor is it derived from others any more.
    trust = case when c.digest is not null and o.trust = 'derived' then 'stated' else o.trust end,
    updated_at = :now::timestamptz, revision = o.revision + 1
from jsonb_to_recordset(:changes::jsonb) as c (id uuid, digest text, fields jsonb)
join memories o on o.namespace_id = :namespace::uuid and o.id = c.id
cross join lateral jsonb_populate_record(o, c.fields) as n
where m.namespace_id = :namespace::uuid and m.id = c.id
returning m.id, m.revision
