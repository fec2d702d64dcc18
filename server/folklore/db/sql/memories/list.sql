-- One page of memories, which starts after the row (:after_time, :after_id). :by is the time to sort by: updated (the
-- last change), happened (occurrence, else creation), or trending. Trending is the time of the last recall, else of
-- occurrence, and up to 60 days later by importance, so that pages do not depend on the present time; pinned ones first.
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
