-- The columns of a recall as an event: all memories of one namespace in one answer, which has one time.
            select u.used_at, u.answer_id, min(u.caller), null, 'recall', count(*)::integer,
                (array_agg(u.memory_id order by u.rank))[1:5]
            from usage u
            where u.namespace_id = n.id and 'recall' = any(:actions::text[])
                and (:author::text is null or lower(u.caller collate "C") = lower(:author::text collate "C"))
