-- A cursor over the relations of one namespace, in an order that every database repeats.
declare folklore_relations no scroll cursor for
select r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from relations r
where r.namespace_id = :namespace::uuid
order by r.from_id, r.type collate "C", r.to_id
