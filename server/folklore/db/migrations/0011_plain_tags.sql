-- A tag has no number sign in front: `#deploy` is the tag `deploy`, and both find it. A memory at a time: on a cluster, one
-- command may not compute the tags of rows on many nodes.

do $do$
declare
    held record;
    plain text[];
begin
    for held in
        select m.namespace_id, m.id, m.tags from memories m
        where exists (select from unnest(m.tags) as tag where tag like '#%' or tag like U&'\FF03%')
    loop
        plain := array(
            select named.tag
            from (
                select ltrim(each.tag, U&'#\FF03:/') as tag, min(each.place) as place
                from unnest(held.tags) with ordinality as each (tag, place)
                group by 1
            ) named
            where named.tag <> ''
            order by named.place
        );
        update memories set tags = plain where namespace_id = held.namespace_id and id = held.id;
    end loop;
end
$do$;
