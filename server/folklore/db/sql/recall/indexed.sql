-- The number of vectors in the HNSW index :name, about; no row without a valid one.
select c.reltuples as vectors
from pg_index x
join pg_class c on c.oid = x.indexrelid
where x.indexrelid = to_regclass(:name::text) and x.indisvalid
