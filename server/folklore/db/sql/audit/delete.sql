delete from audit
where namespace_id = :namespace::uuid and id = any(array(
    select a.id from audit a
    where a.namespace_id = :namespace::uuid and a.at < :before::timestamptz
    order by a.at
    limit :batch::integer
))
returning id
