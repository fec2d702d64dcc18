-- The time of the entry :id.
select a.at from audit a where a.namespace_id = any(:namespaces::uuid[]) and a.id = :id::uuid limit 1
