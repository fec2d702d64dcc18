-- name: delete
delete from audit
where namespace_id = :namespace::uuid and id = any(array(
    select a.id from audit a
    where a.namespace_id = :namespace::uuid and a.at < :before::timestamptz
    order by a.at limit :batch::integer
))
returning id

-- name: insert
insert into audit (namespace_id, id, at, principal, token_id, agent, action, outcome, amount, ids, detail)
values (:namespace::uuid, :id::uuid, :now::timestamptz, :principal::text, :token::uuid, :agent::text, :action::text,
    :outcome::text, :amount::integer, :ids::uuid[], :detail::text)

-- name: read. The latest entries of :namespaces, newest first. Entries that concern no namespace have the id of
-- zeros, and no name.
select (select n.name from namespaces n where n.id = a.namespace_id) as namespace, a.id, a.at, a.principal, a.token_id as token, a.agent, a.action, a.outcome, a.amount,
    a.ids as memories, a.detail
from audit a
where a.namespace_id = any(:namespaces::uuid[])
    and (:principal::text is null or lower(a.principal collate "C") = lower(:principal::text collate "C"))
    and (not :refused::boolean or a.outcome <> 'done')
    and (:action::text is null or a.action = :action::text)
    and (:since::timestamptz is null or a.at >= :since::timestamptz)
    and (:after_at::timestamptz is null or (a.at, a.id) < (:after_at::timestamptz, :after_id::uuid))
order by a.at desc, a.id desc limit :fetch::integer

-- name: time. The time of the entry :id.
select a.at from audit a where a.namespace_id = any(:namespaces::uuid[]) and a.id = :id::uuid limit 1
