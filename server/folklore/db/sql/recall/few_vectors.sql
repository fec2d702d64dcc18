-- The :fetch nearest of the memories :ids, as recall/dense.
select e.memory_id as id, max(-(e.vector <#> :query::halfvec)) as score, max(-(e.vector <#> :query::halfvec)) as mass, e.namespace_id
from embeddings e
where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid and e.memory_id = any(:ids::uuid[])
group by e.memory_id, e.namespace_id
order by score desc, id
limit :fetch::integer
