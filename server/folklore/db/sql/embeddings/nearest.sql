-- The :most memories of :namespace whose whole texts' embeddings in :model are nearest to :query, visible or not: the result
-- compares two embedding generations and is shown to no caller.
select memory_id
from embeddings
where namespace_id = :namespace::uuid and model_id = :model::uuid and passage = 0
order by vector <=> :query::halfvec
limit :most::integer
