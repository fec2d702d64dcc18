-- The whole schema of Folklore; docs/explanation/schema.md has the rules and their reasons. Citus can distribute its tables
-- (docs/how-to/citus.md): data tables begin every key with namespace_id, ids are UUIDv7 made by the client, and there are no
-- sequences, no triggers, no reg* columns and no SET NULL. namespaces, models, principals, tokens, grants, pattern_grants,
-- invitations, console_sessions and jobs stay small and become reference tables.
--
--     1. Text functions      2. Small tables      3. Data tables      4. Row-level security

create extension if not exists vector;

-- Applied migrations, so that each is applied once; the checksum detects a file that was changed afterwards.
create table folklore_migrations (
    name text not null,
    checksum text not null,
    applied_at timestamptz not null,
    constraint folklore_migrations_pkey primary key (name)
);


-- 1. Text functions ---------------------------------------------------------------------------------------------------

-- The lexemes of a text, so that prose and code are both found. `language` names a text search configuration. It is text
-- and not regconfig: OIDs differ between nodes, and pg_upgrade refuses columns that depend on them.
--
-- folklore_words: words in the language, after names were split at case, at punctuation, and between letters and digits:
--     getUserById → get user by id      asyncio.gather → asyncio gather      Postgres17 → postgres 17
-- One letter and its digits stay together (k8s, s3), and so do digits with a unit of one or two letters (100ms), and what
-- is no name but an id (a3f9c1b2). c++, c# and f# would lose their signs and are spelled out first. So are symbols, by their
-- numbers: 🚀 → u128640; of several signs as a whole and by its parts, without the colour of skin. Letters of Latin and
-- Greek lose their accents: after stemming, since stemmers need them, and before, so that a word without them is found too.
--
-- A text in a script without spaces (Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer) is cut into overlapping pairs
-- of characters, so that a phrase of characters is a phrase of pairs:      東京都 → 東京 京都 =都
--
-- With `spelled`, each word that is no lexeme of the text is added at its position, as it is spelled, after '=': function
-- words, and words with another stem. Prefixes, and phrases with function words, are searched there. So are last and
-- single characters of a script without spaces. No word begins with '='.
create function folklore_words(language text, body text, spelled boolean default true) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    symbols constant text := '\u00a2-\u00a9\u00ac\u00ae-\u00b1\u00b6\u00d7\u00f7\u20a0-\u20cf\u2100-\u214f'
        '\u2190-\u243f\u25a0-\u27e5\u27f0-\u2982\u2999-\u2bff\u3030\u303d\U0001d100-\U0001d1ff\U0001f000-\U0001faff';
    tones constant text := '[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*';
    ascii constant boolean := octet_length(body) = char_length(body);
    texts text[];
    words tsvector;
begin
    if not ascii then  -- also without soft hyphens and the vowel points of Hebrew and Arabic
        body := translate(regexp_replace(normalize(body, NFKC),
            '[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]', '', 'g'),
            'ёЁ', 'еЕ');
        if body ~ ('[' || symbols || ']') then  -- 👩‍💻 → u128105u128187 u128105 u128187
            body := (
                select string_agg(case when run.text ~ ('^[^' || symbols || ']') then run.text else (
                        select ' ' || string_agg('u' || ascii(sign), '') || ' ' || case
                            when count(*) > 1 and run.text !~ '^[\U0001f1e6-\U0001f1ff]' then string_agg(
                                'u' || ascii(sign) || ' ', '') filter (where sign !~ '[\U0001f3fb-\U0001f3ff]')
                            else '' end
                        from regexp_split_to_table(regexp_replace(run.text, '[\u200d\ufe0e\ufe0f\u20e3]', '', 'g'), '') as sign
                    ) end, '' order by place)
                from regexp_matches(body, '[\U0001f1e6-\U0001f1ff]{2}|[' || symbols || ']' || tones
                    || '(?:\u200d[' || symbols || ']' || tones || ')*|[^' || symbols || ']+', 'g')
                    with ordinality as matched (texts, place)
                cross join lateral (select matched.texts[1]) as run (text)
            );
        end if;
    end if;
    if body ~ '[+][+]|#' then
        body := regexp_replace(regexp_replace(body,
            '(^|[^A-Za-z0-9_])([a-z])\+\+', '\1\2plusplus ', 'gi'),
            '(^|[^A-Za-z0-9_])([cfjq])#', '\1\2sharp ', 'gi');
    end if;
    -- Vowel signs of India and South-East Asia are no letters for every collation, and belong to the word.
    body := regexp_replace(regexp_replace(regexp_replace(body,
        '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'),
        '([[:upper:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
        '[^[:alnum:][:space:]\u0900-\u0963\u0966-\u0eff\u1000-\u109f\u1780-\u17d3]+', ' ', 'g');
    if not ascii and body ~ no_spaces then  -- 東京都 → 東東京京都都 → 東京京都都 → 東京 京都 都
        body := regexp_replace(regexp_replace(regexp_replace(body,
            '(' || no_spaces || ')', '\1\1', 'g'),
            '(^|[^' || substr(no_spaces, 2) || ')' || no_spaces, '\1 ', 'g'),
            '(' || no_spaces || '{1,2})', '\1 ', 'g');
    end if;
    if body ~ '[[:alpha:]]{2}[[:digit:]]|[[:digit:]][[:alpha:]]{3}' then  -- Postgres17 → Postgres 17
        body := regexp_replace(regexp_replace(body,
            '\m([[:alpha:]]{2,})([[:digit:]]{1,5})(?:([[:alpha:]]{2,})([[:digit:]]{0,5}))?\M', '\1 \2 \3 \4', 'g'),
            '\m([[:digit:]]{1,5})([[:alpha:]]{3,})\M', '\1 \2', 'g');
    end if;
    if ascii or octet_length(body) = char_length(body) then
        words := to_tsvector(language::regconfig, body);
    else
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

-- folklore_compounds: names as one lexeme, in no language:
--     getUserById, get_user_by_id → getuserbyid      ERR_CONN_REFUSED → errconnrefused      OAuth2 → oauth2 oauth
-- Without plain words: counting those twice cost five points of recall. They are removed in runs, a tenth of the time.
create function folklore_compounds(body text) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    plain constant text := '(?:\m(?:[[:upper:]]?[^[:upper:][:space:][:punct:]]*|[[:upper:][:digit:]]+)\M[^[:alnum:]_]*)+';
    digits constant boolean := body ~ '[[:alpha:]]{2}[[:digit:]]|[[:digit:]][[:alpha:]]{3}';
begin
    if not digits
        and body !~ '_|[[:lower:]][[:digit:]]*[[:upper:]]|[[:alnum:]][[:upper:]][[:upper:][:digit:]]*[[:lower:]]' then
        return '';
    end if;
    if octet_length(body) <> char_length(body) then
        body := regexp_replace(normalize(body, NFKC), no_spaces || '+', ' ', 'g');
    end if;
    if digits then  -- Postgres17 → Postgres_17
        body := regexp_replace(regexp_replace(body,
            '\m([[:alpha:]]{2,})([[:digit:]]{1,5})(?:([[:alpha:]]{2,})([[:digit:]]{0,5}))?\M', '\1_\2\3\4', 'g'),
            '\m([[:digit:]]{1,5})([[:alpha:]]{3,})\M', '\1_\2', 'g');
    end if;
    body := regexp_replace(body, plain, ' ', 'g');
    if digits and body ~ '\m[[:alpha:]]+_[[:digit:]]' then  -- OAuth_2 → OAuth
        body := body || ' ' || coalesce((
            select string_agg(regexp_replace(name[1], plain, ' ', 'g'), ' ')
            from regexp_matches(body, '\m([[:alpha:]]+)_[[:digit:]]', 'g') as name), '');
    end if;
    return to_tsvector('pg_catalog.simple'::regconfig,
        regexp_replace(replace(lower(body), '_', ''), '[^[:alnum:]]+', ' ', 'g'));
end
$$;

-- folklore_joined: two parts with a hyphen or slash as one word of the language:
--     on-call → oncall      SHA-256 → sha256      CI/CD → cicd
-- A text has those that are likely to be written as one word: a first part of at most three letters, nine letters in all, a
-- name with a number, or a short pair with a slash. Of a question they are all, with `every`. All in texts would make the
-- postings a fifth larger.
create function folklore_joined(language text, body text, every boolean default false) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    pair constant text := case when every then '[[:alpha:]]+[-/](?:[[:alpha:]]+|[[:digit:]]+)' else
        '[[:alpha:]]{1,3}-[[:alpha:]]{2,}|[[:alpha:]]{4}-[[:alpha:]]{2,5}|[[:alpha:]]{5}-[[:alpha:]]{2,4}'
        '|[[:alpha:]]{6}-[[:alpha:]]{2,3}|[[:alpha:]]{7}-[[:alpha:]]{2}|[[:upper:]][[:alpha:]]*-[[:digit:]]{1,5}'
        '|[[:alpha:]]{1,3}/[[:alpha:]]{1,2}|[[:alpha:]]{1,2}/[[:alpha:]]{3}|[[:alpha:]]/[[:alpha:]]{4}' end;
    names text;
begin
    if body !~ '[[:alpha:]][-/\u2010\u2011][[:alnum:]]' then
        return '';
    end if;
    if octet_length(body) <> char_length(body) then
        body := replace(replace(replace(translate(normalize(regexp_replace(normalize(
            regexp_replace(normalize(body, NFKC), no_spaces || '+', ' ', 'g'), NFD),
            '([A-Za-z\u0370-\u03ff])[\u0300-\u036f]+', '\1', 'g'), NFC),
            '‐øØłŁđĐðÐıħŧ', '-oOlLdDdDiht'), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
    end if;
    names := (
        select string_agg(translate(name[1], '-/', ''), ' ')
        from regexp_matches(body, '[^\s,;()\[\]"`''<>*]+[-/][^\s,;()\[\]"`''<>*]+', 'g') as name
        where name[1] ~ ('^[^[:alnum:]/-]*(?:' || pair || ')(?:[.:!?][^[:alnum:]]*)?$')
    );
    return case when names is null then '' else to_tsvector(language::regconfig, names) end;
end
$$;

-- All of them. `||` shifts the positions of the later ones: phrases are searched in the words.
create function folklore_lexemes(language text, body text) returns tsvector
language sql immutable parallel safe
return folklore_words(language, body) || folklore_compounds(body) || folklore_joined(language, body);

-- The searchable text of a memory. Its parts have labels for the filters of the query language: content none, summary B,
-- source C, tags A. Content comes first, so that its phrases stay below the limit of positions.
create function folklore_search(language text, content text, summary text, tags text[], source text) returns tsvector
language sql immutable parallel safe
return
    folklore_lexemes(language, content)
    || setweight(folklore_lexemes(language, coalesce(summary, '')), 'B')
    || setweight(folklore_lexemes('pg_catalog.simple', coalesce(source, '')), 'C')
    || setweight(folklore_lexemes('pg_catalog.simple', coalesce(array_to_string(tags, ' '), '')), 'A');

-- The hash under which a lexeme has its postings: no text of an erased memory is left in them. By SHA-256, which is the
-- same on every node and in every version. It is even; that of a lexeme in cues, which begins with '~' (folklore_cues), is
-- the odd one after it.
create function folklore_word(lexeme text) returns integer
language sql immutable parallel safe
return (('x' || encode(substring(sha256(convert_to(ltrim(lexeme, '~'), 'UTF8')) for 4), 'hex'))::bit(32)::integer & -2)
    | starts_with(lexeme, '~')::integer;

-- The length of a memory in lexemes, without those of its source and without words as they are spelled.
create function folklore_length(search tsvector) returns smallint
language sql immutable parallel safe
return (
    select least(coalesce(sum(cardinality(array_remove(found.weights, 'C'))), 0), 32767)::smallint
    from unnest(search) as found
    where not starts_with(found.lexeme, '=')
);

-- The words of a memory with their frequencies in content, summary and tags, and its date as five more words
-- (text/dates/date_terms.py), such as @2025-06-30 and @06: a date in a question weighs as much as a rare word.
create function folklore_named_words(search tsvector, happened timestamptz) returns table (word integer, frequency smallint)
language sql immutable parallel safe
begin atomic
    select folklore_word(found.lexeme), cardinality(array_remove(found.weights, 'C'))::smallint
    from unnest(folklore_named_words.search) as found
    where not starts_with(found.lexeme, '=') and cardinality(array_remove(found.weights, 'C')) > 0
    union all
    select folklore_word('@' || to_char(folklore_named_words.happened at time zone 'UTC', form)), 1::smallint
    from unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form;
end;

-- The words of cues, each after '~': an index of their own, so that those of the content keep their frequencies. A question
-- is read in the language of the memory too, so a phrase in another language is found as well, as it is spelled.
create function folklore_cues(language text, cues text[]) returns tsvector
language sql immutable parallel safe
return coalesce((
    select array_to_tsvector(array_agg(distinct '~' || found.lexeme))
    from unnest(folklore_words(language, array_to_string(cues, ' . '), spelled => false)
        || folklore_compounds(array_to_string(cues, ' . '))
        || folklore_joined(language, array_to_string(cues, ' . '))) as found
), '');

-- Every prefix of every tag that ends before ':' or '/': entity:person:sarah is found by entity and by entity:person.
create function folklore_tag_prefixes(tags text[]) returns text[]
language sql immutable parallel safe
return array(
    select distinct array_to_string(parts[1:i], '')
    from unnest(tags) tag,
         lateral (select regexp_split_to_array(tag, '(?=[:/])') as parts) split,
         lateral generate_series(1, cardinality(parts)) i
    order by 1
);


-- The place of a memory among the trending ones: its occurrence or its last recall, and up to 30 days later or earlier by
-- importance; pinned ones first. So pages do not depend on the present time. The hour of the recall, since a change of it
-- moves the memory in every index. An occurrence in the future counts as the last change. Null where it is the time of the
-- memory, and nothing was changed since.
create function folklore_trending(
    pinned boolean, importance real, happened timestamptz, updated_at timestamptz, last_recalled_at timestamptz
) returns timestamptz
language sql immutable parallel safe
return case
    when pinned then timestamptz '9999-12-31 00:00+00'
    when importance is not null or last_recalled_at is not null or updated_at > happened then (least(
        greatest(least(happened, updated_at) at time zone 'UTC', date_trunc('hour', last_recalled_at at time zone 'UTC'),
            timestamp '0001-02-02') + (coalesce(importance, 0.5) - 0.5) * interval '60 days',
        timestamp '9999-12-30')) at time zone 'UTC'
end;

-- 2. Small tables -----------------------------------------------------------------------------------------------------

-- A shared set of memories with its own grants.
create table namespaces (
    id uuid not null,
    name text not null,
    description text,
    -- The language of a memory that states none.
    language text not null default 'english',
    -- Every language of a memory here: a query is read in each of them.
    languages text[] not null default '{english}',
    -- always: a question in any project is asked here too.
    shared text not null default 'never',
    created_at timestamptz not null,
    created_by text not null,
    -- A deleted namespace is hidden with all of its memories until its retention time is over, then erased.
    deleted_at timestamptz,
    deleted_by text,
    constraint namespaces_pkey primary key (id),
    constraint namespaces_shared_check check (shared in ('never', 'always'))
);
-- Names keep their spelling and are unique regardless of the case of A – Z; every other letter differs from every other.
-- lower() without "C" follows the locale of the server: ICU folds ΟΔΟΣ and οδος into one name, Turkish rules keep API and
-- api apart, and Python does neither. The name of a deleted namespace is free.
create unique index namespaces_name_key on namespaces (lower(name collate "C")) where deleted_at is null;

-- An embedding model that vectors were made with. Vectors of different models are never compared. The address is stored
-- and never a key, so that every server can use the active model.
create table models (
    -- Derived from provider, name, dimensions and prefixes, so that every process knows it without a query.
    id uuid not null,
    provider text not null,
    name text not null,
    dimensions integer not null,
    created_at timestamptz not null,
    -- active: embeds queries and new memories. next: is being filled. previous: was active before and can be again until
    -- its vectors are deleted. A switch of models moves these roles in one transaction.
    role text,
    -- The time of the last change of role.
    since timestamptz,
    url text,
    -- The number of dimensions that requests ask for; null for the model's own.
    asked_dimensions integer,
    query_prefix text not null default '',
    document_prefix text not null default '',
    revision text not null default '',
    -- The vector of a fixed text at the first use, to detect another model behind the same name.
    probe real[],
    constraint models_pkey primary key (id),
    constraint models_role_check check (role in ('active', 'next', 'previous'))
);
create unique index models_role_key on models (role);

-- A person or program with tokens. Names are unique as those of namespaces.
create table principals (
    id uuid not null,
    name text not null,
    constraint principals_pkey primary key (id)
);
create unique index principals_name_key on principals (lower(name collate "C"));

-- A token is 32 random bytes, shown once. Its key is their SHA-256, and stored is the SHA-256 of the key: neither this
-- table nor a key in a log of statements gives access.
create table tokens (
    id uuid not null,
    principal_id uuid not null,
    digest bytea not null,
    -- True: every namespace, and administration of the deployment.
    owner boolean not null default false,
    -- The namespace of a request that names none. No foreign key: the namespace may be erased before the token.
    default_namespace_id uuid,
    -- The program that uses the token; recorded with its memories.
    agent text,
    -- The issuer of the external access token that this row represents; null for a token of this server.
    issuer text,
    created_at timestamptz not null,
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- The address of a request at about that time.
    last_address text,
    constraint tokens_pkey primary key (id),
    constraint tokens_principal_fkey foreign key (principal_id) references principals (id) on delete cascade
);
create unique index tokens_digest_key on tokens (digest);
create index tokens_principal_idx on tokens (principal_id);

-- The role of a token in a namespace.
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

-- The role of a token in every namespace whose name begins with a prefix, later ones too: repo:acme/ for the grant
-- repo:acme/*. In lower case, as names are compared, and whole levels of a name: repo:acme/ is no prefix of
-- repo:acmecorp/shop.
create table pattern_grants (
    token_id uuid not null,
    prefix text collate "C" not null,
    role text not null,
    constraint pattern_grants_pkey primary key (token_id, prefix),
    constraint pattern_grants_prefix_check check (prefix ~ '[^:/][:/]$'),
    constraint pattern_grants_role_check check (role in ('reader', 'writer', 'admin')),
    constraint pattern_grants_token_fkey foreign key (token_id) references tokens (id) on delete cascade
);

-- An invitation: a code that is exchanged once for a token. The token has its grants from the beginning, and the digest of
-- random bytes, which is replaced by that of the secret which the invited person's machine made. `digest` is made from the
-- code as tokens.digest is from a token.
create table invitations (
    token_id uuid not null,
    digest bytea not null,
    expires_at timestamptz not null,
    redeemed_at timestamptz,
    constraint invitations_pkey primary key (token_id),
    constraint invitations_token_fkey foreign key (token_id) references tokens (id) on delete cascade
);
create unique index invitations_digest_key on invitations (digest);

-- A session of the console in a browser, or a link that begins one. `digest` is the SHA-256 of the cookie's secret; that
-- of the link's code until the link is used.
create table console_sessions (
    digest bytea not null,
    -- The token of the session; null for the user who runs the server.
    token_id uuid,
    -- The key of the token, unless it is an owner's, XORed with a pad that follows from the secret: neither this table nor
    -- a dump of it gives access.
    sealed_key bytea,
    -- True if the visitor needed no token. Such a session is valid only while the server needs none.
    anonymous boolean not null default false,
    created_at timestamptz not null,
    -- Null for a link that was not used yet.
    begun_at timestamptz,
    expires_at timestamptz not null,
    constraint console_sessions_pkey primary key (digest),
    constraint console_sessions_token_fkey foreign key (token_id) references tokens (id) on delete cascade
);
create index console_sessions_token_idx on console_sessions (token_id);
create index console_sessions_expires_idx on console_sessions (expires_at);

-- A background job: its lease and its last run. A lease in a row and not an advisory lock: it works behind a pooler and
-- on a cluster, shows its holder, and ends by itself if the holder is killed.
create table jobs (
    name text not null,
    -- The process that runs the job until leased_until; null if none does.
    holder text,
    leased_until timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    seconds real,
    -- done, failed or cancelled.
    outcome text,
    -- Counts of the work done, by name.
    done jsonb,
    error text,
    next_due timestamptz,
    -- Values that the next run needs.
    notes jsonb,
    constraint jobs_pkey primary key (name)
);


-- 3. Data tables ------------------------------------------------------------------------------------------------------

-- A memory. The first columns are the fields that its author states (model.FIELDS).
create table memories (
    namespace_id uuid not null,
    id uuid not null,
    content text not null,
    summary text,
    kind text not null,
    tags text[] not null default '{}',
    source text,
    -- A conversation or run, and the place in it: neighbours in a session support each other in recall.
    session text,
    position integer,
    -- From authentication, never from an argument; agent is the author's program.
    author text not null,
    agent text,
    paths text[] not null default '{}',
    commit text,
    -- Git's id of the content that the memory is about, a space and the path, for each file of paths that git has.
    blobs text[] not null default '{}',
    importance real,
    confidence real,
    priority smallint,
    -- Computed by a background job from use and age; recall leaves out a memory below 0.05.
    quality real,
    -- stated, or derived for a reflection that a background job made from other memories.
    trust text not null default 'stated',
    language text not null,
    metadata jsonb,
    pinned boolean not null default false,
    occurred_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    expires_at timestamptz,
    -- Forgotten: hidden, and erased once its retention time is over. Superseded: found only with `as_of` and on request.
    forgotten_at timestamptz,
    superseded_at timestamptz,
    superseded_by uuid,
    last_recalled_at timestamptz,
    recall_count integer not null default 0,
    -- How often, and when last, the same text was stored again.
    confirmed_count integer not null default 0,
    confirmed_at timestamptz,
    -- The number of the present state; each change increases it by one.
    revision integer not null default 1,
    -- SHA-256 of the normalised content.
    digest bytea not null,
    -- A text is stored once among memories in force; a superseded or forgotten text may be stored again.
    live_digest bytea generated always as (
        case when forgotten_at is null and superseded_at is null then digest end
    ) stored,
    tag_prefixes text[] generated always as (folklore_tag_prefixes(tags)) stored,
    search tsvector generated always as (folklore_search(language, content, summary, tags, source)) stored,
    trending timestamptz generated always as (
        folklore_trending(pinned, importance, coalesce(occurred_at, created_at), updated_at, last_recalled_at)
    ) stored,
    -- Phrases that say when the memory is needed, searched beside its content.
    cues text[] not null default '{}',
    -- Who changed the text last, and when, unless that is the author.
    changed_by text,
    changed_at timestamptz,
    -- Those of the cues that were learned from questions, and such as were removed since, which are not learned again.
    learned_cues text[] not null default '{}',
    constraint memories_pkey primary key (namespace_id, id),
    constraint memories_namespace_fkey foreign key (namespace_id) references namespaces (id),
    constraint memories_superseded_fkey foreign key (namespace_id, superseded_by)
        references memories (namespace_id, id) deferrable initially deferred
);
-- Not a partial index: before the first ANALYZE the planner expects one to be nearly empty, and would read all of it to
-- look up one memory.
create unique index memories_digest_key on memories (namespace_id, live_digest);
create index memories_session_idx on memories (namespace_id, session, position) where session is not null;
create index memories_source_idx on memories (namespace_id, source text_pattern_ops) where source is not null;
create index memories_tags_idx on memories using gin (tag_prefixes);
create index memories_search_idx on memories using gin (search);
-- For background jobs: expired memories, memories to erase, and references to an erased memory, for which the foreign
-- key would read the whole namespace.
create index memories_expires_idx on memories (namespace_id, expires_at) where expires_at is not null;
create index memories_forgotten_idx on memories (namespace_id, forgotten_at) where forgotten_at is not null;
create index memories_superseded_idx on memories (namespace_id, superseded_by) where superseded_by is not null;
-- The orders of lists. A memory that was stored and nothing else, as most are, is in the first alone, which serves all of
-- them; the others are for each order. An occurrence in the future counts as the last change.
create index memories_order_idx on memories (namespace_id, least(coalesce(occurred_at, created_at), updated_at), id)
    where trending is null;
create index memories_happened_idx on memories (namespace_id, least(coalesce(occurred_at, created_at), updated_at), id)
    where trending is not null;
create index memories_updated_idx on memories (namespace_id, updated_at, id) where trending is not null;
create index memories_trending_idx on memories (namespace_id, trending, id) where trending is not null;
-- For people, who name a memory by the end of its id: the last four characters leave one of 65,536 memories.
create index memories_ending_idx on memories (namespace_id, right(id::text, 4));
-- The planner keeps samples of columns. None of these, which no plan needs: a sample would outlive an erased memory.
alter table memories alter column content set statistics 0;
alter table memories alter column summary set statistics 0;
alter table memories alter column cues set statistics 0;
alter table memories alter column learned_cues set statistics 0;
alter table memories alter column metadata set statistics 0;

-- An idempotency key, and the memory that answered the request under it. The same request again gets the same answer,
-- whatever became of the memory's text; another request is refused. A memory may have any number of keys.
create table idempotency_keys (
    namespace_id uuid not null,
    key text not null,
    memory_id uuid not null,
    -- The digest of the request: that of the text or, if it also superseded or related, of all of that.
    request bytea not null,
    constraint idempotency_keys_pkey primary key (namespace_id, key),
    constraint idempotency_keys_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index idempotency_keys_memory_idx on idempotency_keys (namespace_id, memory_id);

-- The vectors of a memory in one model: passage 0 is the whole text; a long text has one more row for each passage
-- (text/passages.py), of which the nearest to a query counts, and so do the cues of the memory. A narrow table with vectors stored in line, since exact
-- search reads every page of a namespace. No type modifier: models of different dimensions share the table.
create table embeddings (
    namespace_id uuid not null,
    model_id uuid not null,
    memory_id uuid not null,
    passage smallint not null,
    -- The number of passages of the text, in each of its rows; 0 for a short one.
    passages smallint not null,
    -- The characters of the passage, from 0: begins up to, not including, ends. Both are 0 for the whole text.
    begins smallint not null,
    ends smallint not null,
    -- The length in lexemes, as in postings.
    length smallint not null,
    vector halfvec not null,
    -- The vector of the cues, joined, in the row of the whole text; null without cues, or while it is pending.
    cues halfvec,
    constraint embeddings_pkey primary key (namespace_id, model_id, memory_id, passage),
    constraint embeddings_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade,
    constraint embeddings_model_fkey foreign key (model_id) references models (id)
);
-- Not in CREATE TABLE, where Postgres 15 does not allow it; on Citus it must come before the table is distributed. Not for
-- cues: two vectors of thousands of dimensions are longer than a page.
alter table embeddings alter column vector set storage plain;

-- Postings: memories.search inverted. They give exact document frequencies of a namespace, bound the work of a question by
-- its rarest words, and are indexed under row-level security, where a GIN index is not used.

-- The words of a memory that is not packed yet, written by the statement after the one that writes the memory: their
-- hashes, four bytes each, and their frequencies, two; those of cues too (folklore_cues). A question reads all of its scope. No foreign key, here and below: a check
-- of each would slow a store. Erasing a memory deletes its words first.
create table fresh_words (
    namespace_id uuid not null,
    memory_id uuid not null,
    length smallint not null,
    words bytea not null,
    frequencies bytea not null,
    constraint fresh_words_pkey primary key (namespace_id, memory_id)
);
alter table fresh_words alter column words set storage external;

-- The packed part of a namespace: how many memories, and their summed length; the number of the next one; how many were
-- removed since dead entries were last deleted. A background job packs a namespace with hundreds of fresh memories, which
-- get their numbers, and locks this row before any of the next two tables.
create table packed_namespaces (
    namespace_id uuid not null,
    documents integer not null,
    length bigint not null,
    next integer not null,
    dead integer not null,
    constraint packed_namespaces_pkey primary key (namespace_id),
    constraint packed_namespaces_namespace_fkey foreign key (namespace_id) references namespaces (id)
);

-- 256 packed memories, in the order of their numbers, from 256 * block on: their ids, 16 bytes each, and lengths, 2 bytes
-- each. The id of a removed one is zeros. first_id and last_id bound the others.
create table packed_memories (
    namespace_id uuid not null,
    block integer not null,
    first_id uuid not null,
    last_id uuid not null,
    ids bytea not null,
    lengths bytea not null,
    constraint packed_memories_pkey primary key (namespace_id, block)
);
alter table packed_memories alter column ids set storage plain, alter column lengths set storage plain;

-- The packed memories that hold a word, in blocks of at most 2,000 bytes. An entry of a word of texts, which is even, has
-- eight bytes: number, frequency and length of a memory. One of a word of cues, which counts once, has the number alone.
-- Block 0 is the one that is appended to, and has the number of documents of the word; a full block has the number
-- of its first memory plus one.
create table postings (
    namespace_id uuid not null,
    word integer not null,
    block integer not null,
    documents integer not null,
    entries bytea not null,
    constraint postings_pkey primary key (namespace_id, word, block)
);
-- For a question over thousands of namespaces: the documents of its words in all of them.
create index postings_word_idx on postings (word, namespace_id) include (documents) where block = 0;
alter table postings alter column entries set storage plain;

-- A typed, directed relation between two memories. Neighbours in a session need no row: their positions imply it.
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

-- A change of a memory, with the former values of the changed columns, so that it can be undone. An undo is a change too;
-- `undoes` is the revision that it took back.
create table revisions (
    namespace_id uuid not null,
    memory_id uuid not null,
    -- The number of the memory before the change.
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
-- For `as_of`: the changes since a time.
create index revisions_time_idx on revisions (namespace_id, changed_at);
alter table revisions alter column reason set statistics 0;
alter table revisions alter column before set statistics 0;

-- A memory in an answer, for the counts on memories and for analysis by an operator. Written after the answer, so that a
-- row may be missing.
create table usage (
    namespace_id uuid not null,
    memory_id uuid not null,
    answer_id uuid not null,
    used_at timestamptz not null,
    rank smallint not null,
    score real,
    -- A digest: the query itself is not stored.
    query bytea not null,
    session text,
    caller text not null,
    constraint usage_pkey primary key (namespace_id, memory_id, answer_id),
    constraint usage_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index usage_time_idx on usage (namespace_id, used_at);

-- A write or a denied access, never with a text. Recorded by the transaction that wrote. The namespace of zeros is for
-- what concerns no namespace: tokens, denied accesses, erased namespaces.
create table audit (
    namespace_id uuid not null,
    id uuid not null,
    at timestamptz not null,
    principal text not null,
    token_id uuid,
    agent text,
    action text not null,
    -- done, or the reason of a refusal.
    outcome text not null,
    -- The number of memories, of which ids names at most 1,000.
    amount integer not null default 1,
    ids uuid[] not null,
    detail text,
    constraint audit_pkey primary key (namespace_id, id)
);
create index audit_time_idx on audit (namespace_id, at);

-- A session of an assistant in a project, as the hooks of the client name it. The namespace of zeros is for a project
-- without memories.
create table assistant_sessions (
    namespace_id uuid not null,
    caller text not null,
    session text not null,
    started_at timestamptz not null,
    -- The name of the project, by which a session without a namespace is found.
    project text not null,
    -- What the person said that was not stored: by sentence an object with said_at and, if the assistant was asked to store
    -- it, asked_at. Then how often it was asked.
    stated jsonb not null default '{}',
    asks smallint not null default 0,
    -- Until when hooks are silent in this session; in the one without a name, in every session of the caller.
    paused_until timestamptz,
    constraint assistant_sessions_pkey primary key (namespace_id, caller, session)
);

-- A memory in a text that a hook injected into such a session. Written before the text is given, so that no session gets
-- a memory twice; with the text, which is erased with its memory.
create table injections (
    namespace_id uuid not null,
    memory_id uuid not null,
    -- The injected text, and the place of this memory in it.
    injection_id uuid not null,
    rank smallint not null,
    caller text not null,
    session text not null,
    -- SessionStart or UserPromptSubmit.
    event text not null,
    injected_at timestamptz not null,
    -- The first lines of the injected text, and those of this memory.
    heading text not null,
    note text not null,
    tokens smallint not null,
    -- The first use by the caller afterwards: recalled, read, updated, confirmed, superseded or quoted.
    used_at timestamptz,
    used text,
    -- When the client compacted the session: the memory may be given again.
    dropped_at timestamptz,
    -- False if the note has only the beginning of the memory, which may be given once more, in full.
    whole boolean not null default true,
    constraint injections_pkey primary key (namespace_id, memory_id, injection_id),
    constraint injections_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create unique index injections_once_key on injections (namespace_id, caller, session, memory_id)
    where dropped_at is null;
create index injections_time_idx on injections (namespace_id, injected_at);
alter table injections alter column heading set statistics 0;
alter table injections alter column note set statistics 0;


-- 4. Row-level security -----------------------------------------------------------------------------------------------

-- Requests with a token run in the role folklore_app, which owns nothing (db/roles.sql creates it and grants its
-- privileges, since a migration may not be allowed to). The policies below limit it to the grants of the token; the owner
-- of the tables is the owner of the deployment, and is not limited (docs/how-to/team.md).

-- Declare by its key which token a transaction runs for. The key is in no text of a statement, which a log may have. On a
-- cluster, whose workers get settings as texts, db/distribute.sql has another form of it.
create function folklore_enter(key text) returns void
language plpgsql as $$
begin
    set local role folklore_app;
    perform set_config('folklore.key', key, true);
end
$$;

-- The token of this transaction: none without a key, or if the token is unknown, revoked or expired. It and the next two
-- functions run as their owner, since the caller may not read tokens.
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

-- True if a name begins with a prefix of pattern_grants. As a range, which an index on names serves: the least text after
-- all that begin with repo:acme/ is repo:acme0, since 0 follows / and ; follows : in the order "C". No character has a
-- special meaning.
create function folklore_begins(name text, prefix text) returns boolean
language sql immutable parallel safe
return lower(name collate "C") >= prefix collate "C" and lower(name collate "C") <
    left(prefix, -1) || case right(prefix, 1) when '/' then '0' else ';' end collate "C";

-- The namespaces in which that token has one of these roles, by name or by a pattern. `offset 0` finds the token once.
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

-- The prefixes for which that token has one of these roles.
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

-- The principal of that token: the author of what its transaction writes.
create function folklore_principal() returns text
language sql stable parallel safe security definer
return (select p.name from tokens t join principals p on p.id = t.principal_id where t.id = folklore_token());

-- Memories that match, in namespaces that the token may read. Policies would prevent the use of the GIN index, since its
-- operator is not leakproof; within this function they do not apply, and it returns only what the caller may read.
create function folklore_matching(namespaces uuid[], expression tsquery) returns table (namespace_id uuid, id uuid)
language sql stable parallel safe security definer rows 100
begin atomic
    select m.namespace_id, m.id
    from memories m
    where m.namespace_id = any(folklore_matching.namespaces)
        and m.namespace_id in (select unnest(folklore_readable()))
        and m.search @@ folklore_matching.expression;
end;

-- Deleting goes through functions, which run as their owner: with the privilege to delete from a table, or to update all
-- of it, the role for tokens could lock the table, and everyone would wait. They delete in the namespaces of the token, and
-- anywhere for the owner of the tables, in whose transactions the role is not set.
create function folklore_deletes(namespace uuid, roles text[]) returns boolean
language sql stable security definer
return case
    when current_setting('role') <> 'folklore_app' and pg_has_role(session_user, current_user, 'member') then true
    else namespace = any(folklore_opened(roles)) end;

-- Their embeddings, relations, revisions, keys, usage and injections are deleted by foreign keys; their postings, which
-- have none, must be deleted before.
create function folklore_delete_memories(namespace uuid, ids uuid[]) returns setof uuid
language sql security definer
begin atomic
    delete from memories m
    where m.namespace_id = folklore_delete_memories.namespace and m.id = any(folklore_delete_memories.ids)
        and (select folklore_deletes(folklore_delete_memories.namespace, '{admin}'))
    returning m.id;
end;

-- The postings of memories: rows of fresh ones, ids and statistics of packed ones, whose entries are dead from then on.
create function folklore_delete_postings(namespace uuid, ids uuid[]) returns void
language sql security definer
begin atomic
    delete from fresh_words f
    where f.namespace_id = folklore_delete_postings.namespace and f.memory_id = any(folklore_delete_postings.ids)
        and (select folklore_deletes(folklore_delete_postings.namespace, '{writer,admin}'));
    select from packed_namespaces p where p.namespace_id = folklore_delete_postings.namespace for update;
    update packed_namespaces p
    set documents = p.documents - gone.documents, length = p.length - gone.length, dead = p.dead + gone.documents
    from (
        select count(*)::integer as documents, coalesce(sum(('x' || encode(
            substring(m.lengths from place * 2 + 1 for 2), 'hex'))::bit(16)::integer), 0) as length
        from packed_memories m, generate_series(0, octet_length(m.ids) / 16 - 1) as place
        where m.namespace_id = folklore_delete_postings.namespace
            and exists (select from unnest(folklore_delete_postings.ids) as id where id between m.first_id and m.last_id)
            and substring(m.ids from place * 16 + 1 for 16)
                = any(array(select uuid_send(id) from unnest(folklore_delete_postings.ids) as id))
            and (select folklore_deletes(folklore_delete_postings.namespace, '{writer,admin}'))
    ) gone
    where p.namespace_id = folklore_delete_postings.namespace and gone.documents > 0;
    update packed_memories m
    set ids = (
        select string_agg(case
            when id = any(array(select uuid_send(id) from unnest(folklore_delete_postings.ids) as id))
            then decode(repeat('00', 16), 'hex') else id end, '' order by place)
        from generate_series(0, octet_length(m.ids) / 16 - 1) as place, substring(m.ids from place * 16 + 1 for 16) as id
    )
    where m.namespace_id = folklore_delete_postings.namespace
        and exists (select from unnest(folklore_delete_postings.ids) as id
            where id between m.first_id and m.last_id and position(uuid_send(id) in m.ids) > 0)
        and (select folklore_deletes(folklore_delete_postings.namespace, '{writer,admin}'));
end;

create function folklore_delete_embeddings(namespace uuid, ids uuid[]) returns void
language sql security definer
begin atomic
    delete from embeddings e
    where e.namespace_id = folklore_delete_embeddings.namespace and e.model_id = any(array(select id from models))
        and e.memory_id = any(folklore_delete_embeddings.ids)
        and (select folklore_deletes(folklore_delete_embeddings.namespace, '{writer,admin}'));
end;

-- `relations` is a JSON array.
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

-- The keys whose memory is forgotten, as its text is released.
create function folklore_release_keys(namespace uuid, keys text[]) returns void
language sql security definer
begin atomic
    delete from idempotency_keys k
    using memories m
    where k.namespace_id = folklore_release_keys.namespace and k.key = any(folklore_release_keys.keys)
        and m.namespace_id = folklore_release_keys.namespace and m.id = k.memory_id and m.forgotten_at is not null
        and (select folklore_deletes(folklore_release_keys.namespace, '{writer,admin}'));
end;

-- Functions that statements call on a cluster (Citus). There a lock on one row of a small table excludes those on all others,
-- and a statement with several writes fails. So namespaces are locked on the coordinator, which every server connects to.

-- A policy of a distributed table may have no subquery.
create function folklore_named(name text, roles text[]) returns boolean
language sql stable parallel safe
return exists (
    select from unnest(folklore_prefixes(roles)) as p (prefix) where folklore_begins(folklore_named.name, p.prefix));

-- namespaces/lock.
create function folklore_lock(space uuid) returns table (id uuid, deleted_at timestamptz)
language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(space::text, 0));
    return query select n.id, n.deleted_at from namespaces n where n.id = space;
end
$$;

-- namespaces/ensure. Two transactions that create a namespace of one name wait for each other; no others do.
create function folklore_ensure(
    new_id uuid, new_name text, own_language text, stated text[], detected text[], at timestamptz, author text
) returns table (id uuid, language text)
language plpgsql as $$
declare
    found_id uuid := (
        select n.id from namespaces n where lower(n.name collate "C") = lower(new_name collate "C") and n.deleted_at is null);
begin
    if found_id is null then
        perform pg_advisory_xact_lock(hashtextextended(lower(new_name collate "C"), 0));
        found_id := (
            select n.id from namespaces n where lower(n.name collate "C") = lower(new_name collate "C") and n.deleted_at is null);
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended(coalesce(found_id, new_id)::text, 0));
    if found_id is null then
        stated := array(select distinct unnest(array[own_language] || stated || detected) order by 1);
        insert into namespaces (id, name, language, languages, created_at, created_by)
        values (new_id, new_name, own_language, stated, at, author) on conflict do nothing;
    elsif exists (
        select from namespaces n
        where n.id = found_id and not (n.languages @> stated and (n.language = 'simple' or n.languages @> detected))
    ) then
        update namespaces n set languages = array(select distinct unnest(
            n.languages || stated || case when n.language <> 'simple' then detected end) order by 1)
        where n.id = found_id;
    end if;
    return query select n.id, n.language from namespaces n where n.id = coalesce(found_id, new_id) and n.deleted_at is null;
end
$$;

-- usage/record.
create function folklore_record_usage(space uuid, uses jsonb, since interval) returns setof uuid
language plpgsql as $$
declare
    held uuid[];
    logged record;
begin
    select array_agg(m.id) into held from (
        select m.id from memories m
        where m.namespace_id = space and m.id = any(array(
            select g.memory from jsonb_to_recordset(uses) as g (memory uuid)))
        order by m.id
        for no key update skip locked
    ) m;
    for logged in
        insert into usage (namespace_id, memory_id, answer_id, used_at, rank, score, query, session, caller)
        select space, g.memory, g.answer, g.at, g.rank, g.score, decode(g.query, 'hex'), g.session, g.caller
        from jsonb_to_recordset(uses) as g (
            memory uuid, answer uuid, at timestamptz, rank smallint, score real, query text, session text, caller text)
        where g.memory = any(held) and g.answer is not null
        on conflict do nothing returning memory_id, used_at
    loop
        update memories m
        set recall_count = m.recall_count + 1, last_recalled_at = greatest(m.last_recalled_at, logged.used_at)
        where m.namespace_id = space and m.id = logged.memory_id;
    end loop;
    update injections i set used_at = first.at, used = first.used
    from (
        select distinct on (g.memory, g.caller) g.memory, g.caller, g.at, g.used
        from jsonb_to_recordset(uses) as g (memory uuid, caller text, at timestamptz, used text)
        order by g.memory, g.caller, g.at
    ) first
    where i.namespace_id = space and i.memory_id = first.memory and i.caller = first.caller and i.memory_id = any(held)
        and i.used_at is null and exists (
            select from jsonb_to_recordset(uses) as g (memory uuid, caller text, at timestamptz)
            where g.memory = i.memory_id and g.caller = i.caller and g.at > i.injected_at and g.at <= i.injected_at + since);
    return query select unnest(held);
end
$$;

-- The subquery makes the check once for each statement, and keeps it out of the index conditions: statements name their
-- namespaces too, and get the same plans as the owner's.
alter table namespaces enable row level security;
-- The second condition of reading is for the row that a statement inserts, which functions do not see yet.
create policy namespaces_read on namespaces for select using (
    id in (select unnest(folklore_readable()))
    or deleted_at is null and exists (
        select from unnest((select folklore_prefixes('{reader,writer,admin}'))) as p (prefix)
        where folklore_begins(name, p.prefix)));
-- A store creates a namespace that a pattern of its token matches. No grant by name is for a missing one.
create policy namespaces_create on namespaces for insert with check (
    deleted_at is null and shared = 'never' and created_by = (select folklore_principal()) and exists (
        select from unnest((select folklore_prefixes('{writer,admin}'))) as p (prefix)
        where folklore_begins(name, p.prefix)));
create policy namespaces_learn on namespaces for update using (id in (select unnest(folklore_writable())));

alter table memories enable row level security;
create policy memories_read on memories for select using (namespace_id in (select unnest(folklore_readable())));
create policy memories_store on memories for insert
    with check (namespace_id in (select unnest(folklore_writable())) and author = (select folklore_principal()));
create policy memories_change on memories for update using (namespace_id in (select unnest(folklore_writable())));

alter table idempotency_keys enable row level security;
create policy idempotency_keys_read on idempotency_keys for select
    using (namespace_id in (select unnest(folklore_readable())));
create policy idempotency_keys_write on idempotency_keys for insert
    with check (namespace_id in (select unnest(folklore_writable())));

alter table embeddings enable row level security;
create policy embeddings_read on embeddings for select
    using (namespace_id in (select unnest(folklore_readable())));
create policy embeddings_write on embeddings for insert
    with check (namespace_id in (select unnest(folklore_writable())));
create policy embeddings_change on embeddings for update
    using (namespace_id in (select unnest(folklore_writable())));

alter table fresh_words enable row level security;
create policy fresh_words_read on fresh_words for select using (namespace_id in (select unnest(folklore_readable())));
create policy fresh_words_write on fresh_words for insert
    with check (namespace_id in (select unnest(folklore_writable())));

alter table packed_namespaces enable row level security;
create policy packed_namespaces_read on packed_namespaces for select
    using (namespace_id in (select unnest(folklore_readable())));

alter table packed_memories enable row level security;
create policy packed_memories_read on packed_memories for select
    using (namespace_id in (select unnest(folklore_readable())));

alter table postings enable row level security;
create policy postings_read on postings for select using (namespace_id in (select unnest(folklore_readable())));

alter table relations enable row level security;
create policy relations_read on relations for select using (namespace_id in (select unnest(folklore_readable())));
create policy relations_write on relations for insert
    with check (namespace_id in (select unnest(folklore_writable())) and author = (select folklore_principal()));
create policy relations_change on relations for update
    using (namespace_id in (select unnest(folklore_writable())));

alter table revisions enable row level security;
create policy revisions_read on revisions for select using (namespace_id in (select unnest(folklore_readable())));
create policy revisions_write on revisions for insert
    with check (namespace_id in (select unnest(folklore_writable())) and author = (select folklore_principal()));

alter table audit enable row level security;
create policy audit_write on audit for insert
    with check (namespace_id in (select unnest(folklore_writable())) and principal = (select folklore_principal()));

-- Every role may read the models; a store registers its own.
alter table models enable row level security;
create policy models_read on models for select using (true);
create policy models_learn on models for insert with check (role is null or role = 'active');

-- No policy: only their owner.
alter table principals enable row level security;
alter table tokens enable row level security;
alter table grants enable row level security;
alter table pattern_grants enable row level security;
alter table invitations enable row level security;
alter table console_sessions enable row level security;
alter table usage enable row level security;
alter table assistant_sessions enable row level security;
alter table injections enable row level security;
alter table jobs enable row level security;
