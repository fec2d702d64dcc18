-- Rename tags of the memories :ids: each of :old becomes that of :new in its place. A tag is kept once, where it
-- comes first.
update memories m
set tags = array(
        select renamed.tag
        from (
            select coalesce(given.new, held.tag) as tag, min(held.place) as place
            from unnest(m.tags) with ordinality as held (tag, place)
            left join unnest(:old::text[], :new::text[]) as given (old, new) on given.old = held.tag
            group by 1
        ) renamed
        order by renamed.place
    ),
    updated_at = :now::timestamptz, revision = m.revision + 1
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
