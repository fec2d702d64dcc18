-- Change memories. :changes is a JSON array with one object for each memory: its id, the new values of changed columns
-- under `fields`, and the digest (hexadecimal) of a new text. A memory that moves to another session goes to its end.
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
    -- Quality was computed for the former text.
    quality = case when c.digest is null then o.quality end,
    -- A reflection with another text is no longer derived from its members.
    trust = case when c.digest is not null and o.trust = 'derived' then 'stated' else o.trust end,
    updated_at = :now::timestamptz, revision = o.revision + 1
from jsonb_to_recordset(:changes::jsonb) as c (id uuid, digest text, fields jsonb)
join memories o on o.namespace_id = :namespace::uuid and o.id = c.id
cross join lateral jsonb_populate_record(o, c.fields) as n
where m.namespace_id = :namespace::uuid and m.id = c.id
returning m.id, m.revision
