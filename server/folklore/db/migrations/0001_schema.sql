-- schema.sql has the comments.
create extension if not exists vector;

create table folklore_migrations (
    name text not null,
    checksum text not null,
    applied_at timestamptz not null,
    constraint folklore_migrations_pkey primary key (name)
);

create function folklore_words(language text, body text, spelled boolean default true) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    ascii constant boolean := octet_length(body) = char_length(body);
    texts text[];
    words tsvector;
begin
    if not ascii then  -- also without the vowel points of Hebrew and Arabic
        body := translate(regexp_replace(normalize(body, NFKC),
            '[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]', '', 'g'),
            'ёЁ', 'еЕ');
    end if;
    if body ~ '[+][+]|#' then
        body := regexp_replace(regexp_replace(body, '\mc\+\+', 'cplusplus ', 'gi'), '\m([cf])#', '\1sharp ', 'gi');
    end if;
    -- Vowel signs of India and South-East Asia are no letters for every collation, and belong to the word.
    body := regexp_replace(regexp_replace(regexp_replace(body,
        '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'),
        '([[:upper:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
        '[^[:alnum:][:space:]\u0900-\u0963\u0966-\u0eff\u1000-\u109f\u1780-\u17d3]+', ' ', 'g');
    if ascii or octet_length(body) = char_length(body) then
        words := to_tsvector(language::regconfig, body);
    else
        if body ~ no_spaces then  -- 東京都 → 東東京京都都 → 東京京都都 → 東京 京都 都
            body := regexp_replace(regexp_replace(regexp_replace(body,
                '(' || no_spaces || ')', '\1\1', 'g'),
                '(^|[^' || substr(no_spaces, 2) || ')' || no_spaces, '\1 ', 'g'),
                '(' || no_spaces || '{1,2})', '\1 ', 'g');
        end if;
        texts := array[body, to_tsvector(language::regconfig, body)::text];
        for place in 1..2 loop
            texts[place] := replace(replace(replace(translate(normalize(regexp_replace(normalize(texts[place], NFD),
                '([A-Za-z\u0370-\u03ff])[\u0300-\u036f]+', '\1', 'g'), NFC),
                'øØłŁđĐðÐıħŧ', 'oOlLdDdDiht'), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
        end loop;
        if texts[1] <> body then
            texts[2] := texts[2] || ' ' || to_tsvector(language::regconfig, texts[1])::text;
        end if;
        body := texts[1];
        words := texts[2]::tsvector;
        if spelled then
            words := regexp_replace(texts[2], '''' || no_spaces || ''':[0-9,]+', '', 'g')::tsvector;
        end if;
    end if;
    if not spelled then
        return words;
    end if;
    return (words::text || replace(' ' || ts_delete(to_tsvector('pg_catalog.simple'::regconfig, body),
        tsvector_to_array(words))::text, ' ''', ' ''='))::tsvector;
end
$$;

create function folklore_compounds(body text) returns tsvector
language sql immutable parallel safe
return case when body ~
    '_|[[:lower:]][[:digit:]]*[[:upper:]]|[[:alnum:]][[:upper:]][[:upper:][:digit:]]*[[:lower:]]'
then to_tsvector('pg_catalog.simple'::regconfig,
    regexp_replace(replace(lower(regexp_replace(body,
        '(?:\m(?:[[:upper:]]?[^[:upper:][:space:][:punct:]]*|[[:upper:][:digit:]]+)\M[^[:alnum:]_]*)+', ' ', 'g')),
        '_', ''), '[^[:alnum:]]+', ' ', 'g'))
else '' end;

create function folklore_lexemes(language text, body text) returns tsvector
language sql immutable parallel safe
return folklore_words(language, body) || folklore_compounds(body);

create function folklore_search(language text, content text, summary text, tags text[], source text) returns tsvector
language sql immutable parallel safe
return
    folklore_lexemes(language, content)
    || setweight(folklore_lexemes(language, coalesce(summary, '')), 'B')
    || setweight(folklore_lexemes('pg_catalog.simple', coalesce(source, '')), 'C')
    || setweight(folklore_lexemes('pg_catalog.simple', coalesce(array_to_string(tags, ' '), '')), 'A');

create function folklore_tag_prefixes(tags text[]) returns text[]
language sql immutable parallel safe
return array(
    select distinct array_to_string(parts[1:i], '')
    from unnest(tags) tag,
         lateral (select regexp_split_to_array(tag, '(?=[:/])') as parts) split,
         lateral generate_series(1, cardinality(parts)) i
    order by 1
);

create table namespaces (
    id uuid not null,
    name text not null,
    description text,
    language text not null default 'english',
    languages text[] not null default '{english}',
    shared text not null default 'never',
    created_at timestamptz not null,
    created_by text not null,
    deleted_at timestamptz,
    deleted_by text,
    constraint namespaces_pkey primary key (id),
    constraint namespaces_shared_check check (shared in ('never', 'always'))
);
create unique index namespaces_name_key on namespaces (lower(name collate "C")) where deleted_at is null;

create table models (
    id uuid not null,
    provider text not null,
    name text not null,
    dimensions integer not null,
    created_at timestamptz not null,
    role text,
    since timestamptz,
    url text,
    asked_dimensions integer,
    query_prefix text not null default '',
    document_prefix text not null default '',
    revision text not null default '',
    probe real[],
    constraint models_pkey primary key (id),
    constraint models_role_check check (role in ('active', 'next', 'previous'))
);
create unique index models_role_key on models (role);

create table principals (
    id uuid not null,
    name text not null,
    constraint principals_pkey primary key (id)
);
create unique index principals_name_key on principals (lower(name collate "C"));

create table tokens (
    id uuid not null,
    principal_id uuid not null,
    digest bytea not null,
    owner boolean not null default false,
    default_namespace_id uuid,
    agent text,
    issuer text,
    created_at timestamptz not null,
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    last_address text,
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

create table pattern_grants (
    token_id uuid not null,
    prefix text collate "C" not null,
    role text not null,
    constraint pattern_grants_pkey primary key (token_id, prefix),
    constraint pattern_grants_prefix_check check (prefix ~ '[^:/][:/]$'),
    constraint pattern_grants_role_check check (role in ('reader', 'writer', 'admin')),
    constraint pattern_grants_token_fkey foreign key (token_id) references tokens (id) on delete cascade
);

create table invitations (
    token_id uuid not null,
    digest bytea not null,
    expires_at timestamptz not null,
    redeemed_at timestamptz,
    constraint invitations_pkey primary key (token_id),
    constraint invitations_token_fkey foreign key (token_id) references tokens (id) on delete cascade
);
create unique index invitations_digest_key on invitations (digest);

create table console_sessions (
    digest bytea not null,
    token_id uuid,
    sealed_key bytea,
    anonymous boolean not null default false,
    created_at timestamptz not null,
    begun_at timestamptz,
    expires_at timestamptz not null,
    constraint console_sessions_pkey primary key (digest),
    constraint console_sessions_token_fkey foreign key (token_id) references tokens (id) on delete cascade
);
create index console_sessions_token_idx on console_sessions (token_id);
create index console_sessions_expires_idx on console_sessions (expires_at);

create table presets (
    name text not null,
    base text not null,
    numbers jsonb not null,
    author text not null,
    created_at timestamptz not null,
    constraint presets_pkey primary key (name)
);

create table jobs (
    name text not null,
    holder text,
    leased_until timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    seconds real,
    outcome text,
    done jsonb,
    error text,
    next_due timestamptz,
    notes jsonb,
    constraint jobs_pkey primary key (name)
);

create table memories (
    namespace_id uuid not null,
    id uuid not null,
    content text not null,
    summary text,
    kind text not null,
    tags text[] not null default '{}',
    source text,
    session text,
    position integer,
    author text not null,
    agent text,
    paths text[] not null default '{}',
    commit text,
    blobs text[] not null default '{}',
    importance real,
    confidence real,
    priority smallint,
    quality real,
    trust text not null default 'stated',
    language text not null,
    metadata jsonb,
    pinned boolean not null default false,
    occurred_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    expires_at timestamptz,
    forgotten_at timestamptz,
    superseded_at timestamptz,
    superseded_by uuid,
    last_recalled_at timestamptz,
    recall_count integer not null default 0,
    confirmed_count integer not null default 0,
    confirmed_at timestamptz,
    revision integer not null default 1,
    digest bytea not null,
    live_digest bytea generated always as (
        case when forgotten_at is null and superseded_at is null then digest end
    ) stored,
    tag_prefixes text[] generated always as (folklore_tag_prefixes(tags)) stored,
    search tsvector generated always as (folklore_search(language, content, summary, tags, source)) stored,
    constraint memories_pkey primary key (namespace_id, id),
    constraint memories_namespace_fkey foreign key (namespace_id) references namespaces (id),
    constraint memories_superseded_fkey foreign key (namespace_id, superseded_by)
        references memories (namespace_id, id) deferrable initially deferred
);
create unique index memories_digest_key on memories (namespace_id, live_digest);
create index memories_session_idx on memories (namespace_id, session, position) where session is not null;
create index memories_source_idx on memories (namespace_id, source text_pattern_ops) where source is not null;
create index memories_tags_idx on memories using gin (tag_prefixes);
create index memories_search_idx on memories using gin (search);
create index memories_expires_idx on memories (namespace_id, expires_at) where expires_at is not null;
create index memories_forgotten_idx on memories (namespace_id, forgotten_at) where forgotten_at is not null;
create index memories_superseded_idx on memories (namespace_id, superseded_by) where superseded_by is not null;
create index memories_ending_idx on memories (namespace_id, right(id::text, 4));
alter table memories alter column content set statistics 0;
alter table memories alter column summary set statistics 0;
alter table memories alter column metadata set statistics 0;

create table idempotency_keys (
    namespace_id uuid not null,
    key text not null,
    memory_id uuid not null,
    request bytea not null,
    constraint idempotency_keys_pkey primary key (namespace_id, key),
    constraint idempotency_keys_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index idempotency_keys_memory_idx on idempotency_keys (namespace_id, memory_id);

create table embeddings (
    namespace_id uuid not null,
    model_id uuid not null,
    memory_id uuid not null,
    passage smallint not null,
    passages smallint not null,
    begins smallint not null,
    ends smallint not null,
    length smallint not null,
    vector halfvec not null,
    constraint embeddings_pkey primary key (namespace_id, model_id, memory_id, passage),
    constraint embeddings_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade,
    constraint embeddings_model_fkey foreign key (model_id) references models (id)
);
alter table embeddings alter column vector set storage plain;

create table relations (
    namespace_id uuid not null,
    from_id uuid not null,
    type text not null,
    to_id uuid not null,
    strength real not null,
    author text not null,
    created_at timestamptz not null,
    constraint relations_pkey primary key (namespace_id, from_id, type, to_id),
    constraint relations_from_fkey foreign key (namespace_id, from_id)
        references memories (namespace_id, id) on delete cascade,
    constraint relations_to_fkey foreign key (namespace_id, to_id)
        references memories (namespace_id, id) on delete cascade
);
create index relations_to_idx on relations (namespace_id, to_id);
alter table relations alter column type set statistics 0;

create table revisions (
    namespace_id uuid not null,
    memory_id uuid not null,
    revision integer not null,
    action text not null,
    author text not null,
    agent text,
    changed_at timestamptz not null,
    reason text,
    undoes integer,
    before jsonb not null,
    constraint revisions_pkey primary key (namespace_id, memory_id, revision),
    constraint revisions_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index revisions_time_idx on revisions (namespace_id, changed_at);
alter table revisions alter column reason set statistics 0;
alter table revisions alter column before set statistics 0;

create table usage (
    namespace_id uuid not null,
    memory_id uuid not null,
    answer_id uuid not null,
    used_at timestamptz not null,
    rank smallint not null,
    score real,
    query bytea not null,
    session text,
    caller text not null,
    constraint usage_pkey primary key (namespace_id, memory_id, answer_id),
    constraint usage_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index usage_time_idx on usage (namespace_id, used_at);

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

create table assistant_sessions (
    namespace_id uuid not null,
    caller text not null,
    session text not null,
    started_at timestamptz not null,
    project text not null,
    stated jsonb not null default '{}',
    asks smallint not null default 0,
    paused_until timestamptz,
    constraint assistant_sessions_pkey primary key (namespace_id, caller, session)
);

create table injections (
    namespace_id uuid not null,
    memory_id uuid not null,
    injection_id uuid not null,
    rank smallint not null,
    caller text not null,
    session text not null,
    event text not null,
    injected_at timestamptz not null,
    heading text not null,
    note text not null,
    tokens smallint not null,
    used_at timestamptz,
    used text,
    dropped_at timestamptz,
    constraint injections_pkey primary key (namespace_id, memory_id, injection_id),
    constraint injections_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create unique index injections_once_key on injections (namespace_id, caller, session, memory_id)
    where dropped_at is null;
create index injections_time_idx on injections (namespace_id, injected_at);
alter table injections alter column heading set statistics 0;
alter table injections alter column note set statistics 0;

create function folklore_enter(key text) returns void
language plpgsql as $$
begin
    execute format('set local folklore.key = %L', key);
end
$$;

create function folklore_token() returns uuid
language sql stable parallel safe security definer
return (
    select t.id
    from tokens t
    where t.digest = sha256(case
            when current_setting('folklore.key', true) ~ '^[0-9a-f]{64}$'
            then decode(current_setting('folklore.key', true), 'hex') end)
        and t.revoked_at is null
        and (t.expires_at is null or t.expires_at > now())
);

create function folklore_begins(name text, prefix text) returns boolean
language sql immutable parallel safe
return lower(name collate "C") >= prefix collate "C" and lower(name collate "C") <
    left(prefix, -1) || case right(prefix, 1) when '/' then '0' else ';' end collate "C";

create function folklore_opened(roles text[]) returns uuid[]
language sql stable parallel safe security definer
return (
    select coalesce(array_agg(opened.namespace_id), '{}')
    from (select folklore_token() as id offset 0) t
    cross join lateral (
        select g.namespace_id
        from grants g
        where g.token_id = t.id and g.role = any(roles)
        union all
        select n.id
        from pattern_grants p
        join namespaces n on n.deleted_at is null and folklore_begins(n.name, p.prefix)
        where p.token_id = t.id and p.role = any(roles)
    ) opened
);

create function folklore_prefixes(roles text[]) returns text[]
language sql stable parallel safe security definer
return (
    select coalesce(array_agg(p.prefix), '{}')
    from pattern_grants p
    where p.token_id = folklore_token() and p.role = any(roles)
);

create function folklore_readable() returns uuid[]
language sql stable parallel safe return folklore_opened('{reader,writer,admin}');

create function folklore_writable() returns uuid[]
language sql stable parallel safe return folklore_opened('{writer,admin}');

create function folklore_principal() returns text
language sql stable parallel safe security definer
return (select p.name from tokens t join principals p on p.id = t.principal_id where t.id = folklore_token());

create function folklore_matching(namespaces uuid[], expression tsquery) returns table (namespace_id uuid, id uuid)
language sql stable parallel safe security definer rows 100
begin atomic
    select m.namespace_id, m.id
    from memories m
    where m.namespace_id = any(folklore_matching.namespaces)
        and m.namespace_id in (select unnest(folklore_readable()))
        and m.search @@ folklore_matching.expression;
end;

create function folklore_deletes(namespace uuid, roles text[]) returns boolean
language sql stable security definer
return case
    when current_setting('role') <> 'folklore_app' and pg_has_role(session_user, current_user, 'member') then true
    else namespace = any(folklore_opened(roles)) end;

create function folklore_delete_memories(namespace uuid, ids uuid[]) returns setof uuid
language sql security definer
begin atomic
    delete from memories m
    where m.namespace_id = folklore_delete_memories.namespace and m.id = any(folklore_delete_memories.ids)
        and (select folklore_deletes(folklore_delete_memories.namespace, '{admin}'))
    returning m.id;
end;

create function folklore_delete_embeddings(namespace uuid, ids uuid[]) returns void
language sql security definer
begin atomic
    delete from embeddings e
    where e.namespace_id = folklore_delete_embeddings.namespace and e.model_id = any(array(select id from models))
        and e.memory_id = any(folklore_delete_embeddings.ids)
        and (select folklore_deletes(folklore_delete_embeddings.namespace, '{writer,admin}'));
end;

create function folklore_delete_relations(namespace uuid, relations jsonb)
returns table (from_id uuid, type text, to_id uuid)
language sql security definer
begin atomic
    delete from relations r
    using jsonb_to_recordset(folklore_delete_relations.relations) as d (from_id uuid, type text, to_id uuid)
    where r.namespace_id = folklore_delete_relations.namespace and r.from_id = d.from_id and r.type = d.type
        and r.to_id = d.to_id and (select folklore_deletes(folklore_delete_relations.namespace, '{writer,admin}'))
    returning r.from_id, r.type, r.to_id;
end;

create function folklore_release_keys(namespace uuid, keys text[]) returns void
language sql security definer
begin atomic
    delete from idempotency_keys k
    using memories m
    where k.namespace_id = folklore_release_keys.namespace and k.key = any(folklore_release_keys.keys)
        and m.namespace_id = folklore_release_keys.namespace and m.id = k.memory_id and m.forgotten_at is not null
        and (select folklore_deletes(folklore_release_keys.namespace, '{writer,admin}'));
end;

alter table namespaces enable row level security;
create policy namespaces_read on namespaces for select using (
    id in (select unnest(folklore_readable()))
    or deleted_at is null and exists (
        select from unnest((select folklore_prefixes('{reader,writer,admin}'))) as p (prefix)
        where folklore_begins(name, p.prefix)));
create policy namespaces_create on namespaces for insert with check (
    deleted_at is null and shared = 'never' and created_by = (select folklore_principal()) and exists (
        select from unnest((select folklore_prefixes('{writer,admin}'))) as p (prefix)
        where folklore_begins(name, p.prefix)));
create policy namespaces_learn on namespaces for update using (id in (select unnest(folklore_writable())));

do $do$
declare
    t text;
    of_author constant text := '(namespace_id in (select unnest(folklore_writable())) and %I = (select folklore_principal()))';
    writable constant text := '(namespace_id in (select unnest(folklore_writable())))';
begin
    -- Those without a policy are for their owner alone.
    foreach t in array '{memories,idempotency_keys,embeddings,relations,revisions,audit,models,principals,tokens,grants,
        pattern_grants,invitations,presets,console_sessions,usage,assistant_sessions,injections,jobs}'::text[] loop
        execute format('alter table %I enable row level security', t);
    end loop;
    foreach t in array '{memories,idempotency_keys,embeddings,relations,revisions}'::text[] loop
        execute format('create policy %I on %I for select using (namespace_id in (select unnest(folklore_readable())))',
            t || '_read', t);
    end loop;
    foreach t in array '{idempotency_keys,embeddings}'::text[] loop
        execute format('create policy %I on %I for insert with check %s', t || '_write', t, writable);
    end loop;
    foreach t in array '{memories,embeddings,relations}'::text[] loop
        execute format('create policy %I on %I for update using %s', t || '_change', t, writable);
    end loop;
    foreach t in array '{relations,revisions,audit}'::text[] loop
        execute format('create policy %I on %I for insert with check %s', t || '_write', t,
            format(of_author, case t when 'audit' then 'principal' else 'author' end));
    end loop;
    execute format('create policy memories_store on memories for insert with check %s', format(of_author, 'author'));
end
$do$;
create policy models_read on models for select using (true);
create policy models_learn on models for insert with check(role is null or role = 'active');
