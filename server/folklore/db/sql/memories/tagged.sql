-- The memories with the tag :tag or one below it, unless forgotten, each with these tags.
select m.id, array(
        select tag from unnest(m.tags) as tag
        where tag = :tag::text or starts_with(tag, :tag::text || ':') or starts_with(tag, :tag::text || '/')
    ) as held
from memories m
where m.namespace_id = :namespace::uuid and m.tag_prefixes @> array[:tag::text] and m.forgotten_at is null
order by m.id
