-- The first n.most memories m of the namespace n in an order, from a place on. Those that were not changed, rated, pinned
-- or recalled since have the same place in every order, and one index; so each order reads two indexes.
    from (
        (
            select
-- include record
                , coalesce(m.occurred_at, m.created_at) as sorted_by
            from (
-- include state
-- include of_namespace
                and o.trending is null
            ) m
            where
-- include visible
                and (coalesce(m.occurred_at, m.created_at), m.id) {beyond} (
                    coalesce(:after_time::timestamptz, '{first}'), coalesce(:after_id::uuid, uuid '00000000-0000-0000-0000-000000000000'))
            order by coalesce(m.occurred_at, m.created_at) {order}, m.id {order} limit n.most
        )
        union all
        (
            select
-- include record
                , {sorted_by}
            from (
-- include state
-- include of_namespace
                and o.trending is not null
            ) m
            where
-- include visible
                and ({sorted_by}, m.id) {beyond} (
                    coalesce(:after_time::timestamptz, '{first}'), coalesce(:after_id::uuid, uuid '00000000-0000-0000-0000-000000000000'))
            order by {sorted_by} {order}, m.id {order} limit n.most
        )
    ) m
    order by m.sorted_by {order}, m.id {order} limit n.most
