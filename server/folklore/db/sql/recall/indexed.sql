-- Whether a valid HNSW index covers the vectors of :namespace in :model.
select coalesce((
    select x.indisvalid from pg_index x where x.indexrelid = to_regclass(folklore_hnsw(:namespace::uuid, :model::uuid))
), false) as indexed
