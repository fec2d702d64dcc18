-- The first :fetch events of :actions in :namespaces from :since on, oldest first. As activity/events.
select n.id as namespace, e.*
from namespaces n
cross join lateral (
    select *
    from (
        (
-- include write
                and a.at >= :since::timestamptz
            order by a.at, a.id
            limit :fetch::integer
        )
        union all
        (
-- include recalled
                and u.used_at >= :since::timestamptz
            group by u.used_at, u.answer_id
            order by u.used_at, u.answer_id
            limit :fetch::integer
        )
    ) either
) e
where n.id = any(:namespaces::uuid[])
order by e.at, e.id, n.id
limit :fetch::integer
