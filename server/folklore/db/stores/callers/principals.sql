-- name: any_token. True if a token of this server exists: from then on HTTP requests need one.
select exists (select from tokens where issuer is null) as there

-- name: any_limited. True if a token that is limited to grants is valid at :now.
select true from tokens
where not owner and revoked_at is null and (expires_at is null or expires_at > :now::timestamptz) limit 1

-- name: delete_expired. Delete the rows of external tokens that expired before :before. Tokens of this server stay,
-- to be listed.
delete from tokens where issuer is not null and expires_at < :before::timestamptz returning id

-- name: delete. Delete a principal with its tokens.
delete from principals where name = :name::text

-- name: ensure. The principal of this name, created if it is new; an existing one keeps its spelling.
with made as (
    insert into principals (id, name) values (:id::uuid, :name::text)
    on conflict do nothing returning id, name
)
select id, name from made
union all
select id, name from principals where lower(name collate "C") = lower(:name::text collate "C")
limit 1

-- name: find_token. The token of this digest, valid or not, with its grants: of each namespace the strongest role
-- that a name or a pattern gives. Runs before every request with a token.
select t.id, t.digest, p.name as principal, t.owner, t.agent, t.issuer, t.expires_at, t.revoked_at, t.last_used_at,
    (select n.name from namespaces n where n.id = t.default_namespace_id and n.deleted_at is null) as home,
    opened.ids, opened.names, opened.roles, patterns.prefixes, patterns.roles as prefix_roles
from tokens t
join principals p on p.id = t.principal_id
cross join lateral (
    select array_agg(g.prefix order by g.prefix) as prefixes, array_agg(g.role order by g.prefix) as roles
    from pattern_grants g where g.token_id = t.id
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

-- name: insert_grants. Grant the token :token each of :namespaces in the role at the same index of :roles.
insert into grants (token_id, namespace_id, role)
select :token::uuid, opened.namespace_id, opened.role
from unnest(:namespaces::uuid[], :roles::text[]) as opened (namespace_id, role)

-- name: insert_invitation
insert into invitations (token_id, digest, expires_at) values (:token::uuid, :digest::bytea, :expires_at::timestamptz)

-- name: insert_patterns. Grant the token :token the role at the same index of :roles in the namespaces that begin
-- with each of :prefixes.
insert into pattern_grants (token_id, prefix, role)
select :token::uuid, opened.prefix, opened.role
from unnest(:prefixes::text[], :roles::text[]) as opened (prefix, role)

-- name: insert_token. Insert a token. An external one that two workers see at the same time is inserted once.
insert into tokens (id, principal_id, digest, owner, default_namespace_id, agent, issuer, created_at, created_by, expires_at)
values (:id::uuid, :principal::uuid, :digest::bytea, :owner::boolean, :home::uuid, :agent::text, :issuer::text,
    :now::timestamptz, :author::text, :expires_at::timestamptz)
on conflict (digest) do nothing returning id

-- name: list_tokens. The tokens of the principal :principal, or all; revoked and expired ones, and those of
-- invitations that expired, only with :every.
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

-- name: lock_invitation. The invitation with this digest, valid or not, and its token. The lock makes a second
-- exchange wait for the first.
select i.token_id, i.expires_at, i.redeemed_at, t.revoked_at, t.digest as token_digest, p.name as principal
from invitations i
join tokens t on t.id = i.token_id
join principals p on p.id = t.principal_id
where i.digest = :digest::bytea for update of i, t

-- name: redeem_invitation
update invitations set redeemed_at = :now::timestamptz where token_id = :token::uuid

-- name: revoke_tokens
update tokens t set revoked_at = :now::timestamptz
from principals p
where p.id = t.principal_id and t.revoked_at is null
    and (t.id = any(:ids::uuid[]) or lower(p.name collate "C") = lower(:principal::text collate "C"))
returning t.id, p.name as principal

-- name: set_digest. Give a token its secret. A digest in use violates tokens_digest_key.
update tokens set digest = :digest::bytea where id = :token::uuid

-- name: touch_token. The last use of a token; without an address, the last one stays.
update tokens set last_used_at = :now::timestamptz, last_address = coalesce(:address::text, last_address)
where id = :id::uuid and (last_used_at is null or last_used_at < :now::timestamptz)

-- name: valid_tokens. Those of the tokens :ids that are neither revoked nor expired.
select id from tokens
where id = any(:ids::uuid[]) and revoked_at is null and (expires_at is null or expires_at > :now::timestamptz)
