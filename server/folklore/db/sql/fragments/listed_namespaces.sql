    select n.id, :fetch::integer as most from namespaces n where n.id = any(:namespaces::uuid[])
