-- The only namespace, as a value that a plan knows.
    select n.id, :fetch::integer as most from (select (:namespaces::uuid[])[1] as id) n
    where n.id = any(:namespaces::uuid[])
