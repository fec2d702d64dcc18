-- Delete at most :most embeddings of a model in one namespace, passages too; run again until it deletes none.
delete from embeddings d
using (
    select e.memory_id, e.passage from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
    order by e.memory_id, e.passage
    limit :most::integer
    for update
) doomed
where d.namespace_id = :namespace::uuid and d.model_id = :model::uuid and d.memory_id = doomed.memory_id
    and d.passage = doomed.passage
returning d.memory_id
