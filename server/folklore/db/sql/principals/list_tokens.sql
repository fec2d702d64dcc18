-- The tokens of the principal :principal, or all; revoked and expired ones only with :every.
select t.id, p.name as principal, t.owner, t.agent, t.issuer, t.created_at, t.created_by, t.expires_at, t.revoked_at,
    t.last_used_at,
    (select n.name from namespaces n where n.id = t.default_namespace_id and n.deleted_at is null) as home,
    coalesce((
        select array_agg(n.name || ':' || g.role order by n.name)
        from grants g
        join namespaces n on n.id = g.namespace_id and n.deleted_at is null
        where g.token_id = t.id
    ), '{}') as grants
from tokens t
join principals p on p.id = t.principal_id
where (:principal::text is null or lower(p.name collate "C") = lower(:principal::text collate "C"))
    and (:every::boolean or (t.revoked_at is null and (t.expires_at is null or t.expires_at > :now::timestamptz)))
order by lower(p.name collate "C"), t.created_at, t.id
