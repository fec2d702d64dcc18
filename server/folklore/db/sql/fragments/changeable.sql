-- The columns of a memory m that a revision can hold, as JSON by name.
jsonb_build_object(
        {m.field_values},
        'forgotten_at', m.forgotten_at, 'superseded_at', m.superseded_at, 'superseded_by', m.superseded_by
    )
