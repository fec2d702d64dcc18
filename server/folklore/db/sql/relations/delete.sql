-- Delete relations, :relations a JSON array; see folklore_delete_relations.
select deleted.from_id, deleted.type, deleted.to_id
from folklore_delete_relations(:namespace::uuid, :relations::jsonb) as deleted
