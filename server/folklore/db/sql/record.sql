    m.namespace_id, m.id, m.content, m.summary, m.kind, m.tags, m.source, m.session, m.position, m.author, m.agent,
    m.paths, m.commit, m.importance, m.confidence, m.priority, m.quality, m.language, m.metadata, m.occurred_at,
    m.created_at, m.updated_at, m.expires_at, m.forgotten_at, m.superseded_at, m.superseded_by, m.last_recalled_at,
    m.recall_count, m.revision
