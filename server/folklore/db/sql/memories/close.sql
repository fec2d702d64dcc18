-- Forget or supersede memories. :closings is a JSON array with one object for each memory. Separate from
-- memories/update, since no searched column changes and many memories may be closed at once.
update memories m
set forgotten_at = coalesce(c.forgotten_at, m.forgotten_at), superseded_at = coalesce(c.superseded_at, m.superseded_at),
    superseded_by = coalesce(c.superseded_by, m.superseded_by), updated_at = :now::timestamptz,
    revision = m.revision + 1
from jsonb_to_recordset(:closings::jsonb)
    as c (id uuid, forgotten_at timestamptz, superseded_at timestamptz, superseded_by uuid)
where m.namespace_id = :namespace::uuid and m.id = c.id
returning m.id
