-- The latest texts that a caller stored or changed since a time.
select a.at, m.content
from audit a
cross join lateral unnest(a.ids) as named (id)
cross join lateral (
    select m.id, m.content from memories m
    where m.namespace_id = a.namespace_id and m.id = named.id and m.forgotten_at is null
    limit 1  -- keeps the planner from joining all of memories
) m
where a.namespace_id = any(:namespaces::uuid[]) and a.at >= :since::timestamptz and a.principal = :caller::text
    and a.action = any(:writes::text[]) and a.outcome = 'done'
order by a.at desc, m.id
limit 50
