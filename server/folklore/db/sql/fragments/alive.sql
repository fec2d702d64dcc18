-- True for a memory m in force, not expired and not worn out: visible.sql without filters.
    m.forgotten_at is null
    and m.superseded_at is null
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    and ({m.effective_quality} is null or {m.effective_quality} >= :quality_floor::real)
-- include derived
