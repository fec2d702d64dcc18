-- Memories beyond the results :ids. If :bridges, those with relations to at least two of them (at most :max_relations
-- relations of each result are followed), by the sum of the strengths; and those with a tag of :entities, by the number
-- of such tags, then by importance. With several :hops, also the ends of chains of relations of at least :least_strength,
-- by the product of their strengths: of each hop the :most * 4 best.
with seed as materialized (
    select m.namespace_id, m.id from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
),
link as materialized (
    select seed.namespace_id, linked.id, linked.strength
    from seed
-- include linked
    where :bridges::boolean and linked.strength >= :least_strength::real
),
first as (
    select link.namespace_id, link.id, max(link.strength)::float8 as score
    from link
    where :hops::integer > 1
    group by link.namespace_id, link.id
    order by score desc, link.id
    limit 4 * :most::integer
),
second as (
    select seed.namespace_id, linked.id, max(seed.score * linked.strength) as score
    from first seed
-- include linked
    where linked.strength >= :least_strength::real
    group by seed.namespace_id, linked.id
    order by score desc, linked.id
    limit 4 * :most::integer
),
third as (
    select seed.namespace_id, linked.id, max(seed.score * linked.strength) as score
    from second seed
-- include linked
    where :hops::integer > 2 and linked.strength >= :least_strength::real
    group by seed.namespace_id, linked.id
    order by score desc, linked.id
    limit 4 * :most::integer
),
chain as (
    select reached.namespace_id, reached.id, 'relations' as by, max(reached.score) as score
    from (select * from first union all select * from second union all select * from third) reached
    group by reached.namespace_id, reached.id
),
bridge as (
    select link.namespace_id, link.id, 'relations' as by, sum(link.strength)::float8 as score
    from link
    group by link.namespace_id, link.id
    having count(*) >= 2
),
related as (
    select bridge.* from bridge
    union all
    select chain.* from chain
    where not exists (select from bridge where bridge.namespace_id = chain.namespace_id and bridge.id = chain.id)
),
named as (
    select m.namespace_id, m.id, 'entities' as by,
        cardinality(array(select unnest(m.tags) intersect select unnest(:entities::text[])))
            + coalesce(m.importance, 0.5)::float8 as score
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.tag_prefixes && :entities::text[] and m.tags && :entities::text[]
        and (m.forgotten_at is null and m.superseded_at is null or :include_superseded::boolean or :as_of::timestamptz is not null)
    order by score desc, m.id
    limit :most::integer + cardinality(:ids::uuid[])
),
further as (
    select related.* from related
    union all
    select named.* from named
    where not exists (select from related where related.namespace_id = named.namespace_id and related.id = named.id)
)
select
-- include record
    , further.by, further.score
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
