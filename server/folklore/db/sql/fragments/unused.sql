-- True for a memory m in force that nothing has recalled, changed or confirmed since :before. Pinned ones are in use; so
-- is one whose metadata has a date of a review (:reviewed) that is not older.
    not m.pinned and m.trust <> 'derived'
    and m.forgotten_at is null and m.superseded_at is null
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    and greatest(m.created_at, m.updated_at, m.last_recalled_at, m.confirmed_at) < :before::timestamptz
    and coalesce(m.metadata->>:reviewed::text, '') < :day::text
