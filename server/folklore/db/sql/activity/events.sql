-- The latest events of :actions in :namespaces before an event (:before_at, :before_id, :before_namespace), newest first:
-- writes, and recalls from :recalled_since on, each read by the index on its time, at most :fetch of each namespace.
select n.id as namespace, e.*
from namespaces n
cross join lateral (
    select *
    from (
        (
-- include write
                and a.at <= :before_at::timestamptz
                and (a.at, a.id, a.namespace_id) < (:before_at::timestamptz, :before_id::uuid, :before_namespace::uuid)
            order by a.at desc, a.id desc
            limit :fetch::integer
        )
        union all
        (
-- include recalled
                and u.used_at >= :recalled_since::timestamptz and u.used_at <= :before_at::timestamptz
                and (u.used_at, u.answer_id, u.namespace_id)
                    < (:before_at::timestamptz, :before_id::uuid, :before_namespace::uuid)
            group by u.used_at, u.answer_id
            order by u.used_at desc, u.answer_id desc
            limit :fetch::integer
        )
    ) either
) e
where n.id = any(:namespaces::uuid[])
order by e.at desc, e.id desc, n.id desc
limit :fetch::integer
