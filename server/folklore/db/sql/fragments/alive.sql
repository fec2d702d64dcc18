-- True for a memory m in force, not expired and not worn out: visible.sql without filters.
    m.forgotten_at is null
    and m.superseded_at is null
    and (m.expires_at is null or m.expires_at > :now::timestamptz)
    and (m.quality is null or m.quality >= :quality_floor::real)
-- include derived
