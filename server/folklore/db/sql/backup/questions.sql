-- Texts of which questions are made, chosen by a hash of the id: the same ones in every copy of the store.
select left(m.content, 1000) as content
from memories m
where m.forgotten_at is null and m.superseded_at is null
order by md5(m.id::text), m.namespace_id
limit :limit::integer
