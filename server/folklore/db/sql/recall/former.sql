-- The :fetch best memories by the words that they had at :as_of and that a change of the columns :searched has replaced
-- since. Such words are in no index: they are read from revisions again, for the memories of the first :bound such
-- changes. If :expression, those that satisfy it; else those that hold any of :lexemes.
with altered as materialized (
    select distinct change.namespace_id, change.memory_id as id
    from (
        select r.namespace_id, r.memory_id
        from revisions r
        where r.namespace_id = any(:namespaces::uuid[]) and r.changed_at > :as_of::timestamptz
            and r.before ?| :searched::text[]
        order by r.changed_at
        limit :bound::integer
    ) change
),
former as materialized (
    select m.namespace_id, m.id, coalesce(m.occurred_at, m.created_at) as happened, m.search, folklore_length(m.search) as length
    from altered
    cross join lateral (
-- include state_as_of
        where o.namespace_id = altered.namespace_id and o.id = altered.id
        limit 1  -- keeps the planner from joining all of memories
    ) m
    where m.changed && :searched::text[] and
-- include visible
)
select held.id, coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass, held.namespace_id
-- include happened
from former held
-- include weighed
where case when :expression::tsquery is null then weighed.score is not null else held.search @@ :expression::tsquery end
order by score desc, held.happened desc, held.id
limit :fetch::integer
