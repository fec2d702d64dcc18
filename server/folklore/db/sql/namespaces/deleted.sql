select id, name, deleted_at, deleted_by from namespaces
where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is not null
order by deleted_at desc, id
