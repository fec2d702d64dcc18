-- The namespace of new rows.
    :namespace::uuid
