-- The columns of a write a as an event.
            select a.at, a.id, a.principal as author, a.agent, a.action, a.amount, a.ids[1:5] as memories
            from audit a
            where a.namespace_id = n.id and a.action = any(:actions::text[]) and a.outcome = 'done'
                and (:author::text is null or lower(a.principal collate "C") = lower(:author::text collate "C"))
