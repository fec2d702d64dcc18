-- The same as matching.sql for a token: row-level security would not let `@@` use the index.
    (o.namespace_id, o.id) in (
        select held.namespace_id, held.id from folklore_matching(:namespaces::uuid[], :expression::tsquery) held
    )
