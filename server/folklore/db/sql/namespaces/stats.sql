-- Exact counts of the namespaces :namespaces; without_vector counts the memories without an embedding in :model. Both
-- data tables name the namespaces themselves: joined alone, they would be read whole.
select n.name, count(m.id) filter (where m.forgotten_at is null) as memories,
    count(m.id) filter (where m.forgotten_at is not null) as forgotten,
    count(m.id) filter (where m.superseded_at is not null) as superseded,
    count(m.id) filter (where m.forgotten_at is null and e.memory_id is null) as without_vector,
    count(distinct m.session) as sessions,
    min(m.created_at) as oldest, max(m.created_at) as newest,
    coalesce(sum(length(m.content)), 0)::bigint as characters
from namespaces n
left join memories m on m.namespace_id = n.id and m.namespace_id = any(:namespaces::uuid[])
left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id
    and e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid and e.passage = 0
where n.id = any(:namespaces::uuid[])
group by n.id, n.name
order by n.name
