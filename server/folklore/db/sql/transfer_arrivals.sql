-- :arrivals a JSON array, one object a memory, with what it has lived through elsewhere.
select * from jsonb_to_recordset(:arrivals::jsonb) as d (
    id uuid, {field_types}, step integer, author text, agent text, quality real, trust text, created_at timestamptz,
    updated_at timestamptz, forgotten_at timestamptz, superseded_at timestamptz, last_recalled_at timestamptz,
    recall_count integer, confirmed_count integer, revision integer, digest text, idempotency_key text
)
