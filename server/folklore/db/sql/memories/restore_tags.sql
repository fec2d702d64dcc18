-- Give each of the memories :ids the tags that its revision of the same place in :revisions kept.
update memories m
set tags = array(select jsonb_array_elements_text(r.before -> 'tags')), updated_at = :now::timestamptz,
    revision = m.revision + 1
from unnest(:ids::uuid[], :revisions::integer[]) as given (id, revision)
join revisions r on r.namespace_id = :namespace::uuid and r.memory_id = given.id and r.revision = given.revision
where m.namespace_id = :namespace::uuid and m.id = given.id
