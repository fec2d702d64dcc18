-- Newest first, or another order; a page starts after the row (:after_time, :after_id).
-- :by_updated sorts by the last change instead of when it was true. :ascending turns the order round.
with page as (
    select
-- include record
        , case when :by_updated::boolean then m.updated_at else coalesce(m.occurred_at, m.created_at) end as sorted_by
    from memories m
    where m.namespace_id = any(:namespaces::uuid[])
        and
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
