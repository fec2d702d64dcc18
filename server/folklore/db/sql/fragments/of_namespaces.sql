            where o.namespace_id = any(:namespaces::uuid[])
