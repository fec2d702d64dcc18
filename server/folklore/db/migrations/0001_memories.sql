-- The first schema. It distributes on Citus by namespace_id unchanged: data tables start every key with namespace_id,
-- ids come from the client, no sequences, no triggers, no reg* columns, no SET NULL (docs/schema.md says why for each).
-- namespaces and models stay small: reference tables there.

create extension if not exists vector;

-- Text to lexemes, so that prose and code are both found. Language is text, not regconfig: OIDs differ between nodes and
-- pg_upgrade refuses them. Two readings of the same text are joined:
--   1. the language's, over words taken apart where case or punctuation parts them: getUserById -> get user by id,
--      asyncio.gather -> asyncio gather, src/store.py -> src store py;
--   2. 'simple', over what is no plain word, its underscores dropped: getUserById and get_user_by_id -> getuserbyid,
--      ERR_CONN_REFUSED -> errconnrefused.
-- A plain word is read once: a second, unstemmed form of it would count every word twice and was measured to cost five
-- points of recall. c++, c# and the like would lose their signs, so they are spelled out first.
-- `||` shifts positions: phrases are looked for in the first reading.
create function folklore_words(language text, body text) returns tsvector
language sql immutable parallel safe
return to_tsvector(language::regconfig,
    regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(body,
        '\mc\+\+', 'cplusplus ', 'gi'), '\m([cf])#', '\1sharp ', 'gi'),
        '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'),
        '([[:upper:]]+)([[:upper:]][[:lower:]])', '\1 \2', 'g'),
        '[^[:alnum:]]+', ' ', 'g'));

create function folklore_compounds(body text) returns tsvector
language sql immutable parallel safe
return to_tsvector('pg_catalog.simple'::regconfig,
    regexp_replace(replace(lower(
        regexp_replace(body, '\m([[:upper:]]?[[:lower:][:digit:]]*|[[:upper:][:digit:]]+)\M', ' ', 'g')),
        '_', ''), '[^[:alnum:]]+', ' ', 'g'));

create function folklore_lexemes(language text, body text) returns tsvector
language sql immutable parallel safe
return folklore_words(language, body) || folklore_compounds(body);

-- What a memory is found by: content (no label), summary (B), source (C), tags (A). The labels serve the column filters
-- of the query language. Content comes first so that phrases lie below the position limit.
create function folklore_search(language text, content text, summary text, tags text[], source text) returns tsvector
language sql immutable parallel safe
return
    folklore_lexemes(language, content)
    || setweight(folklore_lexemes(language, coalesce(summary, '')), 'B')
    || setweight(folklore_lexemes('pg_catalog.simple', coalesce(source, '')), 'C')
    || setweight(folklore_lexemes('pg_catalog.simple', coalesce(array_to_string(tags, ' '), '')), 'A');

-- Every prefix of every tag, cut at ':' and '/': entity:person:sarah is found by entity and entity:person.
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
    -- Every language a memory here was ever stored in: a query is read in each of them.
    languages text[] not null default '{english}',
    created_at timestamptz not null,
    created_by text not null,
    constraint namespaces_pkey primary key (id)
);
-- Names keep their case and are one whatever the case.
create unique index namespaces_name_key on namespaces (lower(name));

-- An embedding model that vectors were made with. Its id is derived from its name and dimension, so that every process
-- knows it without asking; vectors of different models never meet.
create table models (
    id uuid not null,
    provider text not null,
    name text not null,
    dimensions integer not null,
    created_at timestamptz not null,
    constraint models_pkey primary key (id)
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
    importance real,
    confidence real,
    priority smallint,
    quality real,
    trust text not null default 'stated',
    language text not null,
    metadata jsonb,
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
    revision integer not null default 1,
    digest bytea not null,
    -- The same text is one memory, as long as it is alive: a superseded or forgotten fact may be stated anew.
    live_digest bytea generated always as (
        case when forgotten_at is null and superseded_at is null then digest end
    ) stored,
    idempotency_key text,
    tag_prefixes text[] generated always as (folklore_tag_prefixes(tags)) stored,
    search tsvector generated always as (folklore_search(language, content, summary, tags, source)) stored,
    constraint memories_pkey primary key (namespace_id, id),
    constraint memories_namespace_fkey foreign key (namespace_id) references namespaces (id),
    constraint memories_superseded_fkey foreign key (namespace_id, superseded_by)
        references memories (namespace_id, id) deferrable initially deferred
);

-- No partial index for this: before the first ANALYZE the planner takes one whose predicate a question implies for
-- nearly empty, and would look a memory up by walking it.
create unique index memories_digest_key on memories (namespace_id, live_digest);
create unique index memories_idempotency_key on memories (namespace_id, idempotency_key)
    where idempotency_key is not null;
create index memories_session_idx on memories (namespace_id, session, position) where session is not null;
create index memories_source_idx on memories (namespace_id, source text_pattern_ops) where source is not null;
create index memories_tags_idx on memories using gin (tag_prefixes);
create index memories_search_idx on memories using gin (search);

-- Narrow and PLAIN: exact search reads these pages only, and no vector is ever moved out of line.
-- No typmod: generations of models of different dimensions stand side by side. A long memory may have several passages.
create table embeddings (
    namespace_id uuid not null,
    model_id uuid not null,
    memory_id uuid not null,
    passage smallint not null default 0,
    -- The memory's length in lexemes, as in postings: long texts are near to everything, and a scan corrects for it.
    length smallint not null,
    vector halfvec not null,
    constraint embeddings_pkey primary key (namespace_id, model_id, memory_id, passage),
    constraint embeddings_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade,
    constraint embeddings_model_fkey foreign key (model_id) references models (id)
);

-- Apart, since CREATE TABLE takes no storage before Postgres 16; on Citus it must come before the table is distributed.
alter table embeddings alter column vector set storage plain;

-- The generated tsvector turned inside out: which memories hold a lexeme in content, summary or tags, how often, where
-- first, and how long those are, in lexemes. Written from memories.search by the statement that writes the memory. It makes document
-- frequency exact per namespace, bounds the work of a question by its rarest words, and keeps its index under row-level
-- security, where GIN on a tsvector does not serve. The index holds all a score needs, so a question reads it alone.
-- No foreign key: a check per lexeme would double the cost of a store. Whoever erases a memory erases these first.
create table postings (
    namespace_id uuid not null,
    lexeme text collate "C" not null,
    memory_id uuid not null,
    frequency smallint not null,
    first_position smallint not null,
    length smallint not null,
    constraint postings_pkey primary key (namespace_id, lexeme, memory_id) include (frequency, first_position, length)
);
