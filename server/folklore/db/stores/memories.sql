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

-- name: list. One page of memories, which starts after the row (:after_time, :after_id). :by is the time to sort by:
-- updated (the last change), happened (occurrence, else creation), or trending. Trending is the time of the last
-- recall, else of occurrence, and up to 60 days later by importance, so that pages do not depend on the present time;
-- pinned ones first.
with page as (
    select
-- include record
        , case :by::text
            when 'updated' then m.updated_at
            when 'trending' then case when m.pinned then timestamptz '9999-12-31 00:00+00' else least(
                greatest(coalesce(m.occurred_at, m.created_at), m.last_recalled_at)
                    + coalesce(m.importance, 0.5) * interval '60 days',
                timestamptz '9999-12-30 00:00+00') end
            else coalesce(m.occurred_at, m.created_at)
        end as sorted_by
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
    ) m
    where
-- include visible
)
select * from page
where :after_time::timestamptz is null
    or (:ascending::boolean and (sorted_by, id) > (:after_time::timestamptz, :after_id::uuid))
    or (not :ascending::boolean and (sorted_by, id) < (:after_time::timestamptz, :after_id::uuid))
order by
    case when :ascending::boolean then sorted_by end asc,
    case when :ascending::boolean then id end asc,
    sorted_by desc, id desc
limit :fetch::integer

-- name: locate. The namespaces, among :namespaces, that hold each of the memories :ids; :unforgotten leaves out
-- forgotten memories.
select m.namespace_id, m.id from memories m
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
    and (not :unforgotten::boolean or m.forgotten_at is null)
order by m.id, m.namespace_id
