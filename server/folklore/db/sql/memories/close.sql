-- :closings a JSON array, one object a memory: when it was forgotten, or superseded and by whom. Apart from
-- memories_change, since nothing that is searched changes and many may be closed at once.
update memories m
set forgotten_at = coalesce(c.forgotten_at, m.forgotten_at), superseded_at = coalesce(c.superseded_at, m.superseded_at),
    superseded_by = coalesce(c.superseded_by, m.superseded_by), updated_at = :now::timestamptz,
    revision = m.revision + 1
from jsonb_to_recordset(:closings::jsonb) as c (
    id uuid, forgotten_at timestamptz, superseded_at timestamptz, superseded_by uuid
)
where m.namespace_id = :namespace::uuid and m.id = c.id
returning m.id
