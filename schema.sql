-- The whole schema, as the migrations in server/folklore/db/migrations make it; they say why it is so.
-- Written by `make schema`, never by hand. A test proves that it is what the migrations make, and that it runs.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE FUNCTION folklore_compounds(body text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector('simple'::regconfig, regexp_replace(replace(lower(regexp_replace(body, '\m([[:upper:]]?[[:lower:][:digit:]]*|[[:upper:][:digit:]]+)\M'::text, ' '::text, 'g'::text)), '_'::text, ''::text), '[^[:alnum:]]+'::text, ' '::text, 'g'::text));

CREATE FUNCTION folklore_enter(key text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    execute format('set local folklore.key = %L', key);
end
$$;

CREATE FUNCTION folklore_hnsw(namespace uuid, model uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ('embeddings_hnsw_'::text || "left"(md5(((((namespace)::text || '/'::text) || (model)::text) || '/sized'::text)), 16));

CREATE FUNCTION folklore_words(language text, body text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector((language)::regconfig, regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(body, '\mc\+\+'::text, 'cplusplus '::text, 'gi'::text), '\m([cf])#'::text, '\1sharp '::text, 'gi'::text), '([[:lower:][:digit:]])([[:upper:]])'::text, '\1 \2'::text, 'g'::text), '([[:upper:]]+)([[:upper:]][[:lower:]])'::text, '\1 \2'::text, 'g'::text), '[^[:alnum:]]+'::text, ' '::text, 'g'::text));

CREATE FUNCTION folklore_lexemes(language text, body text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (folklore_words(language, body) || folklore_compounds(body));

CREATE FUNCTION folklore_search(language text, content text, summary text, tags text[], source text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (((folklore_lexemes(language, content) || setweight(folklore_lexemes(language, COALESCE(summary, ''::text)), 'B'::"char")) || setweight(folklore_lexemes('pg_catalog.simple'::text, COALESCE(source, ''::text)), 'C'::"char")) || setweight(folklore_lexemes('pg_catalog.simple'::text, COALESCE(array_to_string(tags, ' '::text), ''::text)), 'A'::"char"));

CREATE FUNCTION folklore_tag_prefixes(tags text[]) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT DISTINCT array_to_string(split.parts[1:i.i], ''::text) AS array_to_string FROM unnest(folklore_tag_prefixes.tags) tag(tag), LATERAL (SELECT regexp_split_to_array(tag.tag, '(?=[:/])'::text) AS parts) split, LATERAL generate_series(1, cardinality(split.parts)) i(i) ORDER BY (array_to_string(split.parts[1:i.i], ''::text)));

CREATE FUNCTION folklore_sized(vector halfvec, length smallint) RETURNS halfvec
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (vector OPERATOR(||) (ARRAY[((ln(((length)::double precision + (30.0)::double precision)) - (5)::double precision) / (2)::double precision)])::halfvec);

CREATE TABLE audit (
    namespace_id uuid NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    principal text NOT NULL,
    token_id uuid,
    agent text,
    action text NOT NULL,
    outcome text NOT NULL,
    amount integer DEFAULT 1 NOT NULL,
    ids uuid[] NOT NULL,
    detail text,
    CONSTRAINT audit_pkey PRIMARY KEY (namespace_id, id)
);
CREATE INDEX audit_time_idx ON audit USING btree (namespace_id, at);

CREATE TABLE chores (
    name text NOT NULL,
    holder text,
    leased_until timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    seconds real,
    outcome text,
    done jsonb,
    error text,
    next_due timestamp with time zone,
    notes jsonb,
    CONSTRAINT chores_pkey PRIMARY KEY (name)
);

CREATE TABLE embeddings (
    namespace_id uuid NOT NULL,
    model_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    passage smallint DEFAULT 0 NOT NULL,
    length smallint NOT NULL,
    vector halfvec NOT NULL,
    CONSTRAINT embeddings_pkey PRIMARY KEY (namespace_id, model_id, memory_id, passage)
);
ALTER TABLE ONLY embeddings ALTER COLUMN vector SET STORAGE PLAIN;

CREATE TABLE folklore_migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone NOT NULL,
    CONSTRAINT folklore_migrations_pkey PRIMARY KEY (name)
);

CREATE TABLE grants (
    token_id uuid NOT NULL,
    namespace_id uuid NOT NULL,
    role text NOT NULL,
    CONSTRAINT grants_role_check CHECK ((role = ANY (ARRAY['reader'::text, 'writer'::text, 'admin'::text]))),
    CONSTRAINT grants_pkey PRIMARY KEY (token_id, namespace_id)
);
CREATE INDEX grants_namespace_idx ON grants USING btree (namespace_id);

CREATE TABLE idempotency_keys (
    namespace_id uuid NOT NULL,
    key text NOT NULL,
    memory_id uuid NOT NULL,
    request bytea NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (namespace_id, key)
);
CREATE INDEX idempotency_keys_memory_idx ON idempotency_keys USING btree (namespace_id, memory_id);

CREATE TABLE memories (
    namespace_id uuid NOT NULL,
    id uuid NOT NULL,
    content text NOT NULL,
    summary text,
    kind text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    source text,
    session text,
    "position" integer,
    author text NOT NULL,
    agent text,
    paths text[] DEFAULT '{}'::text[] NOT NULL,
    commit text,
    importance real,
    confidence real,
    priority smallint,
    quality real,
    trust text DEFAULT 'stated'::text NOT NULL,
    language text NOT NULL,
    metadata jsonb,
    occurred_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    forgotten_at timestamp with time zone,
    superseded_at timestamp with time zone,
    superseded_by uuid,
    last_recalled_at timestamp with time zone,
    recall_count integer DEFAULT 0 NOT NULL,
    confirmed_count integer DEFAULT 0 NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    digest bytea NOT NULL,
    live_digest bytea GENERATED ALWAYS AS (
CASE
    WHEN ((forgotten_at IS NULL) AND (superseded_at IS NULL)) THEN digest
    ELSE NULL::bytea
END) STORED,
    idempotency_key text,
    tag_prefixes text[] GENERATED ALWAYS AS (folklore_tag_prefixes(tags)) STORED,
    search tsvector GENERATED ALWAYS AS (folklore_search(language, content, summary, tags, source)) STORED,
    confirmed_at timestamp with time zone,
    key_request bytea,
    CONSTRAINT memories_pkey PRIMARY KEY (namespace_id, id)
);
ALTER TABLE ONLY memories ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE ONLY memories ALTER COLUMN summary SET STATISTICS 0;
ALTER TABLE ONLY memories ALTER COLUMN metadata SET STATISTICS 0;
CREATE UNIQUE INDEX memories_digest_key ON memories USING btree (namespace_id, live_digest);
CREATE INDEX memories_expires_idx ON memories USING btree (namespace_id, expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX memories_forgotten_idx ON memories USING btree (namespace_id, forgotten_at) WHERE (forgotten_at IS NOT NULL);
CREATE UNIQUE INDEX memories_idempotency_key ON memories USING btree (namespace_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX memories_search_idx ON memories USING gin (search);
CREATE INDEX memories_session_idx ON memories USING btree (namespace_id, session, "position") WHERE (session IS NOT NULL);
CREATE INDEX memories_source_idx ON memories USING btree (namespace_id, source text_pattern_ops) WHERE (source IS NOT NULL);
CREATE INDEX memories_superseded_idx ON memories USING btree (namespace_id, superseded_by) WHERE (superseded_by IS NOT NULL);
CREATE INDEX memories_tags_idx ON memories USING gin (tag_prefixes);

CREATE TABLE models (
    id uuid NOT NULL,
    provider text NOT NULL,
    name text NOT NULL,
    dimensions integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    role text,
    since timestamp with time zone,
    url text,
    asked_dimensions integer,
    query_prefix text DEFAULT ''::text NOT NULL,
    document_prefix text DEFAULT ''::text NOT NULL,
    revision text DEFAULT ''::text NOT NULL,
    probe real[],
    CONSTRAINT models_role_check CHECK ((role = ANY (ARRAY['active'::text, 'next'::text, 'previous'::text]))),
    CONSTRAINT models_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX models_role_key ON models USING btree (role);

CREATE TABLE namespaces (
    id uuid NOT NULL,
    name text NOT NULL,
    description text,
    language text DEFAULT 'english'::text NOT NULL,
    languages text[] DEFAULT '{english}'::text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    deleted_at timestamp with time zone,
    deleted_by text,
    CONSTRAINT namespaces_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX namespaces_name_key ON namespaces USING btree (lower((name COLLATE "C"))) WHERE (deleted_at IS NULL);

CREATE TABLE postings (
    namespace_id uuid NOT NULL,
    lexeme text NOT NULL COLLATE pg_catalog."C",
    memory_id uuid NOT NULL,
    frequency smallint NOT NULL,
    first_position smallint NOT NULL,
    length smallint NOT NULL,
    CONSTRAINT postings_pkey PRIMARY KEY (namespace_id, lexeme, memory_id) INCLUDE (frequency, first_position, length)
);

CREATE TABLE principals (
    id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    CONSTRAINT principals_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX principals_name_key ON principals USING btree (lower((name COLLATE "C")));

CREATE TABLE relations (
    namespace_id uuid NOT NULL,
    from_id uuid NOT NULL,
    type text NOT NULL,
    to_id uuid NOT NULL,
    strength real NOT NULL,
    author text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT relations_pkey PRIMARY KEY (namespace_id, from_id, type, to_id)
);
ALTER TABLE ONLY relations ALTER COLUMN type SET STATISTICS 0;
CREATE INDEX relations_to_idx ON relations USING btree (namespace_id, to_id);

CREATE TABLE revisions (
    namespace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    revision integer NOT NULL,
    action text NOT NULL,
    author text NOT NULL,
    agent text,
    changed_at timestamp with time zone NOT NULL,
    reason text,
    undoes integer,
    before jsonb NOT NULL,
    CONSTRAINT revisions_pkey PRIMARY KEY (namespace_id, memory_id, revision)
);
ALTER TABLE ONLY revisions ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE ONLY revisions ALTER COLUMN before SET STATISTICS 0;

CREATE TABLE tokens (
    id uuid NOT NULL,
    principal_id uuid NOT NULL,
    digest bytea NOT NULL,
    owner boolean DEFAULT false NOT NULL,
    default_namespace_id uuid,
    agent text,
    issuer text,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT tokens_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX tokens_digest_key ON tokens USING btree (digest);
CREATE INDEX tokens_principal_idx ON tokens USING btree (principal_id);

CREATE TABLE usage (
    namespace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    answer_id uuid NOT NULL,
    used_at timestamp with time zone NOT NULL,
    rank smallint NOT NULL,
    score real,
    query bytea NOT NULL,
    session text,
    caller text NOT NULL,
    CONSTRAINT usage_pkey PRIMARY KEY (namespace_id, memory_id, answer_id)
);
CREATE INDEX usage_time_idx ON usage USING btree (namespace_id, used_at);

CREATE FUNCTION folklore_opened(roles text[]) RETURNS uuid[]
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    RETURN (SELECT COALESCE(array_agg(g.namespace_id), '{}'::uuid[]) AS "coalesce" FROM (tokens t JOIN grants g ON ((g.token_id = t.id))) WHERE ((t.digest = sha256(CASE WHEN (current_setting('folklore.key'::text, true) ~ '^[0-9a-f]{64}$'::text) THEN decode(current_setting('folklore.key'::text, true), 'hex'::text) ELSE NULL::bytea END)) AND (t.revoked_at IS NULL) AND ((t.expires_at IS NULL) OR (t.expires_at > now())) AND (g.role = ANY (folklore_opened.roles))));

CREATE FUNCTION folklore_administered() RETURNS uuid[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN folklore_opened('{admin}'::text[]);

CREATE FUNCTION folklore_readable() RETURNS uuid[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN folklore_opened('{reader,writer,admin}'::text[]);

CREATE FUNCTION folklore_matching(namespaces uuid[], expression tsquery) RETURNS TABLE(namespace_id uuid, id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER ROWS 100 PARALLEL SAFE
    BEGIN ATOMIC
 SELECT m.namespace_id,
     m.id
    FROM memories m
   WHERE ((m.namespace_id = ANY (folklore_matching.namespaces)) AND (m.namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)) AND (m.search @@ folklore_matching.expression));
END;

CREATE FUNCTION folklore_writable() RETURNS uuid[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN folklore_opened('{writer,admin}'::text[]);

ALTER TABLE ONLY embeddings ADD CONSTRAINT embeddings_memory_fkey FOREIGN KEY (namespace_id, memory_id) REFERENCES memories(namespace_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY embeddings ADD CONSTRAINT embeddings_model_fkey FOREIGN KEY (model_id) REFERENCES models(id);
ALTER TABLE ONLY grants ADD CONSTRAINT grants_namespace_fkey FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE CASCADE;
ALTER TABLE ONLY grants ADD CONSTRAINT grants_token_fkey FOREIGN KEY (token_id) REFERENCES tokens(id) ON DELETE CASCADE;
ALTER TABLE ONLY idempotency_keys ADD CONSTRAINT idempotency_keys_memory_fkey FOREIGN KEY (namespace_id, memory_id) REFERENCES memories(namespace_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY memories ADD CONSTRAINT memories_namespace_fkey FOREIGN KEY (namespace_id) REFERENCES namespaces(id);
ALTER TABLE ONLY memories ADD CONSTRAINT memories_superseded_fkey FOREIGN KEY (namespace_id, superseded_by) REFERENCES memories(namespace_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY relations ADD CONSTRAINT relations_from_fkey FOREIGN KEY (namespace_id, from_id) REFERENCES memories(namespace_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY relations ADD CONSTRAINT relations_to_fkey FOREIGN KEY (namespace_id, to_id) REFERENCES memories(namespace_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY revisions ADD CONSTRAINT revisions_memory_fkey FOREIGN KEY (namespace_id, memory_id) REFERENCES memories(namespace_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY tokens ADD CONSTRAINT tokens_principal_fkey FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE;
ALTER TABLE ONLY usage ADD CONSTRAINT usage_memory_fkey FOREIGN KEY (namespace_id, memory_id) REFERENCES memories(namespace_id, id) ON DELETE CASCADE;
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY audit_write ON audit FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE chores ENABLE ROW LEVEL SECURITY;
ALTER TABLE embeddings ENABLE ROW LEVEL SECURITY;
CREATE POLICY embeddings_change ON embeddings FOR UPDATE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY embeddings_drop ON embeddings FOR DELETE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY embeddings_read ON embeddings FOR SELECT USING ((namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)));
CREATE POLICY embeddings_write ON embeddings FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY idempotency_keys_drop ON idempotency_keys FOR DELETE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY idempotency_keys_read ON idempotency_keys FOR SELECT USING ((namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)));
CREATE POLICY idempotency_keys_write ON idempotency_keys FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
CREATE POLICY memories_change ON memories FOR UPDATE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY memories_erase ON memories FOR DELETE USING ((namespace_id IN ( SELECT unnest(folklore_administered()) AS unnest)));
CREATE POLICY memories_read ON memories FOR SELECT USING ((namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)));
CREATE POLICY memories_store ON memories FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE models ENABLE ROW LEVEL SECURITY;
CREATE POLICY models_learn ON models FOR INSERT WITH CHECK (((role IS NULL) OR (role = 'active'::text)));
CREATE POLICY models_read ON models FOR SELECT USING (true);
ALTER TABLE namespaces ENABLE ROW LEVEL SECURITY;
CREATE POLICY namespaces_learn ON namespaces FOR UPDATE USING ((id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY namespaces_read ON namespaces FOR SELECT USING ((id IN ( SELECT unnest(folklore_readable()) AS unnest)));
ALTER TABLE postings ENABLE ROW LEVEL SECURITY;
CREATE POLICY postings_drop ON postings FOR DELETE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY postings_read ON postings FOR SELECT USING ((namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)));
CREATE POLICY postings_write ON postings FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE principals ENABLE ROW LEVEL SECURITY;
ALTER TABLE relations ENABLE ROW LEVEL SECURITY;
CREATE POLICY relations_change ON relations FOR UPDATE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY relations_drop ON relations FOR DELETE USING ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
CREATE POLICY relations_read ON relations FOR SELECT USING ((namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)));
CREATE POLICY relations_write ON relations FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE revisions ENABLE ROW LEVEL SECURITY;
CREATE POLICY revisions_read ON revisions FOR SELECT USING ((namespace_id IN ( SELECT unnest(folklore_readable()) AS unnest)));
CREATE POLICY revisions_write ON revisions FOR INSERT WITH CHECK ((namespace_id IN ( SELECT unnest(folklore_writable()) AS unnest)));
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage ENABLE ROW LEVEL SECURITY;
