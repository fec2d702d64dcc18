-- The :size memories of :namespace whose vectors in :model are nearest to :query, whether anybody may see them or not:
-- two generations are compared, and nothing is answered.
select memory_id
from embeddings
where namespace_id = :namespace::uuid and model_id = :model::uuid
order by vector <=> :query::halfvec
limit :size::integer
