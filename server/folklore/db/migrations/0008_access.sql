-- Who may do what, held by the database itself: principals, their tokens, what each token opens, and row-level security
-- for a role that owns nothing (docs/access.md). principals, tokens and grants stay small and are copied whole to every
-- node of a cluster; audit is cut by namespace.

create table principals (
    id uuid not null,
    name text not null,
    created_at timestamptz not null,
    created_by text not null,
    constraint principals_pkey primary key (id)
);
create unique index principals_name_key on principals (lower(name));

-- A token is 32 random bytes that are shown once. Its key is their SHA-256; kept is the SHA-256 of the key. So whoever
-- reads this table, or sees a key in a log of statements, has nothing that the server would take for a token.
create table tokens (
    id uuid not null,
    principal_id uuid not null,
    digest bytea not null,
    -- The one deployment-wide role: everything, everywhere.
    owner boolean not null default false,
    -- Where to write when the caller does not say.
    default_namespace_id uuid,
    -- What it is used by; stands as the agent with what is stored.
    agent text,
    -- Who vouched for it: null for a token of our own, else the issuer of the access token it stands for.
    issuer text,
    created_at timestamptz not null,
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    constraint tokens_pkey primary key (id),
    constraint tokens_principal_fkey foreign key (principal_id) references principals (id) on delete cascade
);
create unique index tokens_digest_key on tokens (digest);
create index tokens_principal_idx on tokens (principal_id);

create table grants (
    token_id uuid not null,
    namespace_id uuid not null,
    role text not null,
    constraint grants_pkey primary key (token_id, namespace_id),
    constraint grants_role_check check (role in ('reader', 'writer', 'admin')),
    constraint grants_token_fkey foreign key (token_id) references tokens (id) on delete cascade,
    constraint grants_namespace_fkey foreign key (namespace_id) references namespaces (id) on delete cascade
);
create index grants_namespace_idx on grants (namespace_id);

-- Every write and every refused access: who, when, what, how much, never a text. Written by the transaction that wrote.
-- What concerns no namespace stands under the id of zeros.
create table audit (
    namespace_id uuid not null,
    id uuid not null,
    at timestamptz not null,
    principal text not null,
    token_id uuid,
    agent text,
    action text not null,
    outcome text not null,
    amount integer not null default 1,
    ids uuid[] not null,
    detail text,
    constraint audit_pkey primary key (namespace_id, id)
);
create index audit_time_idx on audit (namespace_id, at);

-- A transaction says by its token's key whose it is; the setting ends with it. SET LOCAL and not set_config(), which
-- does not reach the workers of a cluster.
create function folklore_enter(key text) returns void
language plpgsql as $$
begin
    execute format('set local folklore.key = %L', key);
end
$$;

-- The namespaces that the token of this transaction opens in one of these roles; none without a key, with a wrong one,
-- or with one that was revoked or has expired. It is asked once a statement and table, and reads as its owner what the
-- caller may not. A name here cannot be taken for another: they were resolved when this was made.
create function folklore_opened(roles text[]) returns uuid[]
language sql stable parallel safe security definer
return (
    select coalesce(array_agg(g.namespace_id), '{}')
    from tokens t
    join grants g on g.token_id = t.id
    where t.digest = sha256(case
            when current_setting('folklore.key', true) ~ '^[0-9a-f]{64}$'
            then decode(current_setting('folklore.key', true), 'hex') end)
        and t.revoked_at is null
        and (t.expires_at is null or t.expires_at > now())
        and g.role = any(roles)
);

create function folklore_readable() returns uuid[]
language sql stable parallel safe return folklore_opened('{reader,writer,admin}');

create function folklore_writable() returns uuid[]
language sql stable parallel safe return folklore_opened('{writer,admin}');

create function folklore_administered() returns uuid[]
language sql stable parallel safe return folklore_opened('{admin}');

-- What matches, in namespaces that the token opens, by the index that row-level security would keep from being used: its
-- operator could tell of rows that the caller may not see (it is not leakproof), so it is asked behind the policies,
-- where the rows are the caller's own.
create function folklore_matching(namespaces uuid[], expression tsquery) returns table (namespace_id uuid, id uuid)
language sql stable parallel safe security definer rows 100
begin atomic
    select m.namespace_id, m.id
    from memories m
    where m.namespace_id = any(folklore_matching.namespaces)
        and m.namespace_id in (select unnest(folklore_readable()))
        and m.search @@ folklore_matching.expression;
end;

-- The subquery makes it one question a statement, and no condition for an index: the statements' own name the namespaces
-- too, and the plans are those of the owner. Not forced: the role that owns the tables is the deployment's owner.
alter table namespaces enable row level security;
create policy namespaces_read on namespaces for select using (id in (select unnest(folklore_readable())));
create policy namespaces_learn on namespaces for update using (id in (select unnest(folklore_writable())));

alter table memories enable row level security;
create policy memories_read on memories for select using (namespace_id in (select unnest(folklore_readable())));
create policy memories_store on memories for insert
    with check (namespace_id in (select unnest(folklore_writable())));
create policy memories_change on memories for update using (namespace_id in (select unnest(folklore_writable())));
create policy memories_erase on memories for delete
    using (namespace_id in (select unnest(folklore_administered())));

alter table embeddings enable row level security;
create policy embeddings_read on embeddings for select
    using (namespace_id in (select unnest(folklore_readable())));
create policy embeddings_write on embeddings for insert
    with check (namespace_id in (select unnest(folklore_writable())));
create policy embeddings_change on embeddings for update
    using (namespace_id in (select unnest(folklore_writable())));
create policy embeddings_drop on embeddings for delete
    using (namespace_id in (select unnest(folklore_writable())));

alter table postings enable row level security;
create policy postings_read on postings for select using (namespace_id in (select unnest(folklore_readable())));
create policy postings_write on postings for insert
    with check (namespace_id in (select unnest(folklore_writable())));
create policy postings_drop on postings for delete using (namespace_id in (select unnest(folklore_writable())));

alter table relations enable row level security;
create policy relations_read on relations for select using (namespace_id in (select unnest(folklore_readable())));
create policy relations_write on relations for insert
    with check (namespace_id in (select unnest(folklore_writable())));
create policy relations_change on relations for update
    using (namespace_id in (select unnest(folklore_writable())));
create policy relations_drop on relations for delete using (namespace_id in (select unnest(folklore_writable())));

alter table revisions enable row level security;
create policy revisions_read on revisions for select using (namespace_id in (select unnest(folklore_readable())));
create policy revisions_write on revisions for insert
    with check (namespace_id in (select unnest(folklore_writable())));

alter table audit enable row level security;
create policy audit_write on audit for insert with check (namespace_id in (select unnest(folklore_writable())));

-- Which models there are is no secret of a namespace; a store makes its own known.
alter table models enable row level security;
create policy models_read on models for select using (true);
create policy models_learn on models for insert with check (role is null or role = 'active');

-- No policy: nobody but their owner.
alter table principals enable row level security;
alter table tokens enable row level security;
alter table grants enable row level security;
alter table usage enable row level security;
alter table chores enable row level security;
