-- The :most unused memories, the longest unused first.
select m.id
from memories m
where m.namespace_id = :namespace::uuid and
-- include unused
order by greatest(m.created_at, m.last_recalled_at, m.confirmed_at), m.id
limit :most::integer
