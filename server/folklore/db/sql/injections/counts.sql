-- The number of memories in force, and their most frequent kinds and tags, without the default
-- kind, with the number of each.
with alive as (
    select m.kind, m.tags
    from memories m
    where m.namespace_id = :namespace::uuid and
    -- include alive
),
topics as (
    select topic, count(*) as number
    from alive
    cross join lateral unnest(array_append(alive.tags, alive.kind)) topic
    where topic <> 'note' and not starts_with(topic, 'entity:')
    group by topic
    having count(*) > 1
    order by number desc, topic
    limit 6
)
select (select count(*) from alive)::integer as memories,
    array(select format('%s %s', topic, number) from topics order by number desc, topic) as topics
