-- True for a memory m that the filters let through; a null parameter filters nothing.
    m.forgotten_at is null
    and (:as_of::timestamptz is null or coalesce(m.occurred_at, m.created_at) <= :as_of::timestamptz)
    and (:include_superseded::boolean or m.superseded_at is null)
    and ({m.ends_at} is null or {m.ends_at} > coalesce(:as_of::timestamptz, :now::timestamptz))
    and case when :faded::boolean then {m.effective_quality} < :quality_floor::real
        else {m.effective_quality} is null or {m.effective_quality} >= :quality_floor::real end
    and (:reflections::boolean is null or (m.kind = 'reflection') = :reflections::boolean)
-- include derived
    and (:kinds::text[] is null or m.kind = any(:kinds::text[]))
    and (:tags::text[] is null or case
        when :tag_exact::boolean and :tag_all::boolean then m.tags @> :tags::text[]
        when :tag_exact::boolean then m.tags && :tags::text[]
        when :tag_all::boolean then m.tag_prefixes @> :tags::text[]
        else m.tag_prefixes && :tags::text[] end)
    and (:exclude_tags::text[] is null or not case
        when :tag_exact::boolean then m.tags && :exclude_tags::text[]
        else m.tag_prefixes && :exclude_tags::text[] end)
    and (:negations::text is null or m.search @@ :negations::tsquery)
    and (:source_prefix::text is null or starts_with(m.source, :source_prefix::text))
    {m.field_filters}
    and (:author::text is null or m.author = :author::text)
-- The root of the repository (.) has all paths below it, but not those outside: absolute ones, ~ and ..
    and (:paths::text[] is null or exists (
        select from unnest(m.paths) held, unnest(:paths::text[]) requested
        where held = requested or starts_with(held, requested || '/')
            or (requested = '.' and held !~ '^(/|~|[.][.](/|$)|[A-Za-z]:(/|$))')))
    and (:metadata::jsonpath is null or coalesce(m.metadata, '{}') @@ :metadata::jsonpath)
    and (:since::timestamptz is null or coalesce(m.occurred_at, m.created_at) >= :since::timestamptz)
    and (:until::timestamptz is null or coalesce(m.occurred_at, m.created_at) < :until::timestamptz)
