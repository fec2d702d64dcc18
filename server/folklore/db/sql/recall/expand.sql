-- Memories beyond the results :ids. If :bridges, those with relations to at least two of them (at most :max_relations
-- relations of each result are followed), by the sum of the strengths; and those with a tag of :entities, by the number
-- of such tags, then by importance.
with seed as materialized (
    select m.namespace_id, m.id from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
),
link as materialized (
    select seed.namespace_id, linked.id, linked.strength
    from seed
-- include linked
    where :bridges::boolean
),
bridge as (
    select link.namespace_id, link.id, 'relations' as by, sum(link.strength)::float8 as score
    from link
    group by link.namespace_id, link.id
    having count(*) >= 2
),
named as (
    select m.namespace_id, m.id, 'entities' as by,
        cardinality(array(select unnest(m.tags) intersect select unnest(:entities::text[])))
            + coalesce(m.importance, 0.5)::float8 as score
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.tag_prefixes && :entities::text[] and m.tags && :entities::text[]
    order by score desc, m.id
    limit :most::integer + cardinality(:ids::uuid[])
),
further as (
    select bridge.* from bridge
    union all
    select named.* from named
    where not exists (select from bridge where bridge.namespace_id = named.namespace_id and bridge.id = named.id)
)
select
-- include record
    , further.by
from further
cross join lateral (
-- include state
    where o.namespace_id = further.namespace_id and o.id = further.id
    limit 1
) m
where m.namespace_id = any(:namespaces::uuid[]) and m.id <> all(:ids::uuid[]) and
-- include visible
order by further.by desc, further.score desc, m.id
limit :most::integer
