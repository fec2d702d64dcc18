-- The partial HNSW indexes over embeddings, each with its predicate.
select c.relname as name, pg_get_expr(x.indpred, x.indrelid) as predicate, x.indisvalid as valid
from pg_index x
join pg_class c on c.oid = x.indexrelid
join pg_class t on t.oid = x.indrelid
join pg_am a on a.oid = c.relam
where t.relname = 'embeddings' and a.amname = 'hnsw' and x.indpred is not null
order by c.relname
