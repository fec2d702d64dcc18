jsonb_build_object(
        'content', m.content, 'summary', m.summary, 'kind', m.kind, 'tags', m.tags, 'source', m.source,
        'session', m.session, 'position', m.position, 'paths', m.paths, 'commit', m.commit,
        'importance', m.importance, 'confidence', m.confidence, 'priority', m.priority, 'language', m.language,
        'metadata', m.metadata, 'occurred_at', m.occurred_at, 'expires_at', m.expires_at,
        'forgotten_at', m.forgotten_at, 'superseded_at', m.superseded_at, 'superseded_by', m.superseded_by
    )
