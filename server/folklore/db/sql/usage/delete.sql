with old as materialized (
    select u.memory_id, u.answer_id
    from usage u
    where u.namespace_id = :namespace::uuid and u.used_at < :before::timestamptz
    order by u.used_at
    limit :batch::integer
    for update skip locked
)
delete from usage u
using old
where u.namespace_id = :namespace::uuid and u.memory_id = old.memory_id and u.answer_id = old.answer_id
returning u.memory_id
