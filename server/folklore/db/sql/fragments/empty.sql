-- True for a namespace n without memories.
    (select m.id from memories m where m.namespace_id = n.id order by m.id limit 1) is null
