-- Delete at most :size vectors of a model in one namespace; asked again until there is none.
delete from embeddings d
using (
    select e.memory_id from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
    order by e.memory_id
    limit :size::integer
    for update
) doomed
where d.namespace_id = :namespace::uuid and d.model_id = :model::uuid
    and d.memory_id = doomed.memory_id
returning d.memory_id
