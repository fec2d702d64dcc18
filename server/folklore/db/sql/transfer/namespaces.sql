select id, name, description, language, shared, created_at, created_by
from namespaces
where deleted_at is null
    and (:names::text[] is null or lower(name collate "C") in (
        select lower(requested.name collate "C") from unnest(:names::text[]) as requested (name)
    ))
