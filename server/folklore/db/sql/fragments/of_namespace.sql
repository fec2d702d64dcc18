            where o.namespace_id = n.id
