-- The latest writes of memories in :namespaces, newest first: of each namespace at most :fetch by the index on the time.
select e.namespace_id as namespace, e.id, e.at, e.principal, e.action, e.outcome, e.amount, e.ids as memories, e.agent
from namespaces n
cross join lateral (
    select a.*
    from audit a
    where a.namespace_id = n.id and a.action = any(:actions::text[]) and a.outcome = 'done'
        and (:principal::text is null or lower(a.principal collate "C") = lower(:principal::text collate "C"))
        and (:since::timestamptz is null or a.at >= :since::timestamptz)
        and (:until::timestamptz is null or a.at < :until::timestamptz)
    order by a.at desc
    limit :fetch::integer
) e
where n.id = any(:namespaces::uuid[])
order by e.at desc, e.id desc
limit :fetch::integer
