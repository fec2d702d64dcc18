-- The columns of a memory m that answers need.
    m.namespace_id, m.id, {m.fields}, m.position, m.author, m.agent, m.quality, m.created_at, m.updated_at,
    m.forgotten_at, m.superseded_at, m.superseded_by, m.last_recalled_at, m.recall_count, m.revision
