-- The token of this digest, valid or not, with its grants: of each namespace the strongest role that a name or a pattern
-- gives. Runs before every request with a token.
select t.id, t.digest, p.name as principal, t.owner, t.agent, t.issuer, t.expires_at, t.revoked_at, t.last_used_at,
    (select n.name from namespaces n where n.id = t.default_namespace_id and n.deleted_at is null) as home,
    opened.ids, opened.names, opened.roles, patterns.prefixes, patterns.roles as prefix_roles
from tokens t
join principals p on p.id = t.principal_id
cross join lateral (
    select array_agg(g.prefix order by g.prefix) as prefixes, array_agg(g.role order by g.prefix) as roles
    from pattern_grants g
    where g.token_id = t.id
) patterns
cross join lateral (
    select array_agg(strongest.id order by strongest.name) as ids,
        array_agg(strongest.name order by strongest.name) as names,
        array_agg(strongest.role order by strongest.name) as roles
    from (
        select distinct on (n.id) n.id, n.name, given.role
        from (
            select g.namespace_id as id, g.role from grants g where g.token_id = t.id
            union all
            select n.id, g.role
            from pattern_grants g
            join namespaces n on n.deleted_at is null and folklore_begins(n.name, g.prefix)
            where g.token_id = t.id
        ) given
        join namespaces n on n.id = given.id and n.deleted_at is null
        order by n.id, array_position('{admin,writer,reader}', given.role)
    ) strongest
) opened
where t.digest = :digest::bytea
