-- The :fetch best of the memories :ids that hold any of :lexemes, as recall/keyword.
with held as materialized (
    select m.namespace_id, m.id, m.search, coalesce(m.occurred_at, m.created_at) as happened, folklore_length(m.search) as length
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
)
select held.id, weighed.score, weighed.mass, held.namespace_id
from held
-- include weighed
where weighed.score is not null
order by weighed.score desc, held.id
limit :fetch::integer
