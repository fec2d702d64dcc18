-- The latest entries of :namespaces, newest first. Entries that concern no namespace have the id of zeros.
select a.namespace_id as namespace, a.id, a.at, a.principal, a.token_id as token, a.agent, a.action, a.outcome, a.amount,
    a.ids as memories, a.detail
from audit a
where a.namespace_id = any(:namespaces::uuid[])
    and (:principal::text is null or lower(a.principal collate "C") = lower(:principal::text collate "C"))
    and (not :refused::boolean or a.outcome <> 'done')
    and (:action::text is null or a.action = :action::text)
    and (:since::timestamptz is null or a.at >= :since::timestamptz)
    and (:after_at::timestamptz is null or (a.at, a.id) < (:after_at::timestamptz, :after_id::uuid))
order by a.at desc, a.id desc
limit :fetch::integer
