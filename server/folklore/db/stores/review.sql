-- name: contradictions. The latest :most pairs in force of which one contradicts the other.
select r.from_id, r.to_id from relations r
where r.namespace_id = :namespace::uuid and
-- include contradicting
order by r.created_at desc, r.from_id, r.to_id limit :most::integer

-- name: page. The next :most memories in force that may be near-duplicates of others, from the newest to the oldest,
-- after :after.
select m.id from memories m
where m.namespace_id = :namespace::uuid and (:after::uuid is null or m.id < :after::uuid)
    and m.forgotten_at is null and m.superseded_at is null and m.trust <> 'derived'
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
order by m.id desc limit :most::integer

-- name: settled. The pairs among :ids that a relation of :types joins, in both directions.
select r.from_id, r.to_id from relations r
where r.namespace_id = :namespace::uuid and r.type = any(:types::text[])
    and r.from_id = any(:ids::uuid[]) and r.to_id = any(:ids::uuid[])

-- name: unused. The :most unused memories, the longest unused first.
select m.id from memories m
where m.namespace_id = :namespace::uuid and
-- include unused
order by greatest(m.created_at, m.last_recalled_at, m.confirmed_at), m.id limit :most::integer

-- name: without_cues. The :most memories in force without cues that were recalled and injected most.
select m.id
from memories m
left join (
    select i.namespace_id, i.memory_id, count(*) as times from injections i
    where i.namespace_id = :namespace::uuid
    group by i.namespace_id, i.memory_id
) injected on injected.namespace_id = m.namespace_id and injected.memory_id = m.id
where m.namespace_id = :namespace::uuid and m.cues = '{}' and m.trust <> 'derived'
    and m.forgotten_at is null and m.superseded_at is null
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    and m.recall_count + coalesce(injected.times, 0) > 0
order by m.recall_count + coalesce(injected.times, 0) desc, m.id desc limit :most::integer
