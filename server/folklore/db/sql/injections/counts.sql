-- The number of memories in force, and of the decisions among them.
select count(*)::integer as memories, (count(*) filter (where m.kind = 'decision'))::integer as decisions
from memories m
where m.namespace_id = :namespace::uuid and
-- include alive
