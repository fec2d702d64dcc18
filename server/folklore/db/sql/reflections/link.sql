insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, given.reflection, 'derived_from', given.member, 1, :author::text, :now::timestamptz
from unnest(:reflections::uuid[], :members::uuid[]) as given (reflection, member)
on conflict do nothing
