-- name: clear_successor. Clear superseded_by where it names one of :ids, which are erased next. The memories stay
-- superseded.
update memories m set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by = any(:ids::uuid[])

-- name: delete. Delete memories; see folklore_delete_memories.
select deleted.id from folklore_delete_memories(:namespace::uuid, :ids::uuid[]) as deleted (id)

-- name: derived. The reflections derived from the memories :ids, whose words they repeat.
select distinct m.id
from relations r
join memories m on m.namespace_id = r.namespace_id and m.id = r.from_id
where r.namespace_id = :namespace::uuid and r.to_id = any(:ids::uuid[]) and r.type = 'derived_from'
    and m.trust = 'derived'

-- name: ending. Memories of :namespaces whose id, written without dashes, ends in one of :endings; :tails are the
-- last four characters of each, for the index. Materialized, so that the limit does not make a scan of the whole
-- table look cheap.
with found as materialized (
    select m.id from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and right(m.id::text, 4) = any(:tails::text[])
)
select distinct e.ending, f.id
from found f
join unnest(:endings::text[]) as e (ending) on right(replace(f.id::text, '-', ''), length(e.ending)) = e.ending
order by e.ending, f.id desc limit :fetch::integer

-- name: get
select n.name as namespace,
-- include record
from memories m
join namespaces n on n.id = m.namespace_id
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])

-- name: list. One page of memories, which starts after the row (:after_time, :after_id). The variant names the time to
-- sort by: updated (the last change), happened (the time of order), or trending (folklore_trending).
select listed.*
from (
-- include listed_namespaces
) n
cross join lateral (
    select m.*
-- include listed
) listed
order by listed.sorted_by {order}, listed.id {order} limit :fetch::integer

-- name: locate. The namespaces, among :namespaces, that hold each of the memories :ids; :unforgotten leaves out
-- forgotten memories.
select m.namespace_id, m.id from memories m
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
    and (not :unforgotten::boolean or m.forgotten_at is null)
order by m.id, m.namespace_id

-- name: others. Whether :namespace holds a memory that is none of :ids.
select exists (
    select from memories m where m.namespace_id = :namespace::uuid and m.id <> all(:ids::uuid[])
) as found
