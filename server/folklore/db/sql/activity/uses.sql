-- The latest :fetch uses of a memory, newest first: in answers, and in texts that hooks injected, of :caller alone if it is
-- given.
select *
from (
    (
        select u.answer_id as id, u.used_at as at, 'recall' as kind, u.caller as author, u.rank, u.score, u.session,
            null::text as used, null::timestamptz as used_at
        from usage u
        where u.namespace_id = :namespace::uuid and u.memory_id = :memory::uuid
        order by u.used_at desc, u.answer_id desc
        limit :fetch::integer
    )
    union all
    (
        select i.injection_id, i.injected_at, 'injection', i.caller, i.rank + 1, null, i.session, i.used, i.used_at
        from injections i
        where i.namespace_id = :namespace::uuid and i.memory_id = :memory::uuid
            and (:caller::text is null or i.caller = :caller::text)
        order by i.injected_at desc, i.injection_id desc
        limit :fetch::integer
    )
) either
order by at desc, id desc
limit :fetch::integer
