-- What nobody may see, whatever is asked: visible.sql without its filters.
    m.forgotten_at is null
    and m.superseded_at is null
    and (m.expires_at is null or m.expires_at > :now::timestamptz)
    and (m.quality is null or m.quality >= :quality_floor::real)
-- include derived
