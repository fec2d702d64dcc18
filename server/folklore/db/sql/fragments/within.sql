-- True for a vector e of :namespaces.
    e.namespace_id = any(:namespaces::uuid[])
