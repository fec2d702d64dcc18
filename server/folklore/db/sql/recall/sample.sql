-- A sample of a scope for the dense branch: :sample vectors in :model, the oldest :share of each namespace, each as its
-- passage, number of passages and length (two bytes each) and its wire form. The oldest, so that the sample does not depend on
-- the order of rows: newer vectors come last. Of a long text the whole and the first passage: a sample of many texts
-- varies more than one of all passages of a few. In a scope of :many memories or more, if :texts, also as many of its oldest texts,
-- each up to :text_read characters. indexed: a valid HNSW index covers the scope. A statement of its own since it names
-- embeddings: a lock on that table must not stop the keyword branch.
select counted.many, (
    select string_agg(
        int2send(drawn.passage) || int2send(drawn.passages) || int2send(drawn.length)
            || halfvec_send(drawn.vector), ''::bytea)
    from (
        select oldest.*
        from unnest(:namespaces::uuid[]) as space (id)
        cross join lateral (
            select e.passage, e.passages, e.length, e.vector
            from embeddings e
            where e.namespace_id = space.id and e.model_id = :model::uuid and e.passage <= 1
            order by e.memory_id, e.passage
            limit :share::integer
        ) oldest
        limit :sample::integer
    ) drawn
) as vectors, (
    select x.indisvalid
    from pg_index x
    where cardinality(:namespaces::uuid[]) = 1
        and x.indexrelid = to_regclass(folklore_hnsw((:namespaces::uuid[])[1], :model::uuid))
) as indexed, case when :texts::boolean and counted.many then (
    select array_agg(left(drawn.content, :text_read::integer))
    from (
        select oldest.content
        from unnest(:namespaces::uuid[]) as space (id)
        cross join lateral (
            select m.content
            from memories m
            where m.namespace_id = space.id and m.forgotten_at is null
            order by m.id
            limit :text_share::integer
        ) oldest
        limit :many::integer
    ) drawn
) end as texts
from (
    select count(*) >= :many::integer as many
    from (select from memories m where m.namespace_id = any(:namespaces::uuid[]) limit :many::integer) bounded
) counted
