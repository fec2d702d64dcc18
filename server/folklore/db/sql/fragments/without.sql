-- True for a vector e of any other namespace, by a short list: one of thousands is compared with each vector in turn.
    e.namespace_id <> all(array(
        select id from namespaces where deleted_at is not null or id in (select unnest(:namespaces::uuid[]))
    ))
