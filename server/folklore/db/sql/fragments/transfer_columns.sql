-- :memories a JSON array with one object for each memory, its past included.
select * from jsonb_to_recordset(:memories::jsonb) as d (
    id uuid, {field_types}, step integer, author text, agent text, quality real, trust text, created_at timestamptz,
    updated_at timestamptz, forgotten_at timestamptz, superseded_at timestamptz, last_recalled_at timestamptz,
    recall_count integer, confirmed_count integer, revision integer, digest text, idempotency_key text
)
