-- The same on a cluster, for all models at once: none may be asked after another.
    join (select e.model_id, count(*) as vectors from embeddings e group by e.model_id) counted on counted.model_id = m.id
