-- One HNSW index is over the vectors of all namespaces; the job `indexes` drops those of single ones.
drop function if exists folklore_hnsw(uuid, uuid);
