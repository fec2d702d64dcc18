-- Included in the place of matching.sql for the holder of a token, whom row-level security keeps from the index.
    (m.namespace_id, m.id) in (
        select held.namespace_id, held.id from folklore_matching(:namespaces::uuid[], :expression::tsquery) held
    )
