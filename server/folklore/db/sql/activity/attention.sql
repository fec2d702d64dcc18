-- What wants attention in each of :namespaces: pairs that contradict each other, unused memories and those tied to files,
-- each counted up to :most, and memories without an embedding in :model.
select n.name as namespace,
    (select count(*) from (
        select from relations r
        where r.namespace_id = n.id and
-- include contradicting
        limit :most::integer
    ) bounded) as contradictions,
    (select count(*) from (
        select from memories m
        where m.namespace_id = n.id and
-- include unused
        limit :most::integer
    ) bounded) as unused,
    (select count(*) from (
        select from memories m
        where m.namespace_id = n.id and m.paths <> '{}'
            and m.forgotten_at is null and m.superseded_at is null
            and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
        limit :most::integer
    ) bounded) as tied
-- include without_vector
from namespaces n
where n.id = any(:namespaces::uuid[])
order by n.name
