-- :arrivals a JSON array, one object a memory, with what it has lived through elsewhere.
select * from jsonb_to_recordset(:arrivals::jsonb) as d (
    id uuid, content text, summary text, kind text, tags text[], source text, session text, position integer,
    step integer, author text, agent text, paths text[], commit text, importance real, confidence real,
    priority smallint, quality real, trust text, language text, metadata jsonb, occurred_at timestamptz,
    created_at timestamptz, updated_at timestamptz, expires_at timestamptz, forgotten_at timestamptz,
    superseded_at timestamptz, last_recalled_at timestamptz, recall_count integer, confirmed_count integer,
    revision integer, digest text, idempotency_key text
)
