-- How many memories of :namespaces were written on each day, by author and action. Days as in activity/recalled.
select width_bucket(a.at, :starts::timestamptz[]) - 1 as day, a.principal as author, a.action,
    sum(a.amount)::bigint as memories
from audit a
where a.namespace_id = any(:namespaces::uuid[]) and a.at >= (:starts::timestamptz[])[1] and a.outcome = 'done'
    and a.action = any(:actions::text[])
group by day, a.principal, a.action
