-- The token of this digest, valid or not, with its grants. Runs before every request with a token.
select t.id, t.digest, p.name as principal, t.owner, t.agent, t.issuer, t.expires_at, t.revoked_at, t.last_used_at,
    (select n.name from namespaces n where n.id = t.default_namespace_id and n.deleted_at is null) as home,
    opened.ids, opened.names, opened.roles
from tokens t
join principals p on p.id = t.principal_id
cross join lateral (
    select array_agg(n.id order by n.name) as ids, array_agg(n.name order by n.name) as names,
        array_agg(g.role order by n.name) as roles
    from grants g
    join namespaces n on n.id = g.namespace_id and n.deleted_at is null
    where g.token_id = t.id
) opened
where t.digest = :digest::bytea
