-- The namespaces with the first rows, one of each: the first of all are among theirs.
    select n.id, :fetch::integer as most
    from (
        select n.id, 1 as most from namespaces n where n.id = any(:namespaces::uuid[])
    ) n
    cross join lateral (
        select m.sorted_by, m.id
-- include listed
    ) m
    order by m.sorted_by {order}, m.id {order} limit :fetch::integer
