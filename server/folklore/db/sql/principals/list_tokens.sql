-- The tokens of the principal :principal, or all; revoked and expired ones, and those of invitations that expired, only
-- with :every.
select t.id, p.name as principal, t.owner, t.agent, t.issuer, t.created_at, t.created_by, t.expires_at, t.revoked_at,
    t.last_used_at, t.last_address, i.expires_at as invited_until,
    (select n.name from namespaces n where n.id = t.default_namespace_id and n.deleted_at is null) as home,
    coalesce((
        select array_agg(given.name || ':' || given.role order by given.name)
        from (
            select n.name, g.role
            from grants g
            join namespaces n on n.id = g.namespace_id and n.deleted_at is null
            where g.token_id = t.id
            union all
            select g.prefix || '*', g.role from pattern_grants g where g.token_id = t.id
        ) given
    ), '{}') as grants
from tokens t
join principals p on p.id = t.principal_id
left join invitations i on i.token_id = t.id and i.redeemed_at is null
where (:principal::text is null or lower(p.name collate "C") = lower(:principal::text collate "C"))
    and (:every::boolean or (t.revoked_at is null
        and (t.expires_at is null or t.expires_at > :now::timestamptz)
        and (i.expires_at is null or i.expires_at > :now::timestamptz)))
order by lower(p.name collate "C"), t.created_at, t.id
