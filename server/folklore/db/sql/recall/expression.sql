-- The memories that satisfy the tsquery :expression, best first: by the weight of the lexemes they contain, then the
-- newest. If very many match (a short prefix), the :bound newest are ranked. Their lengths are estimated, at eight bytes a
-- lexeme: counting the positions of a tsvector takes longer than all else.
with held as materialized (
    select m.namespace_id, m.id, m.search, coalesce(m.occurred_at, m.created_at) as happened,
        octet_length(m.content) / 8 as length
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
            and
-- include matching
    ) m
    where
-- include visible
-- include unaltered
    order by happened desc, m.id
    limit :bound::integer
)
select held.id, coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass, held.namespace_id
-- include happened
from held
-- include weighed
order by score desc, held.happened desc, held.id
limit :fetch::integer
