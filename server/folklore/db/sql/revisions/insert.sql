-- Write a revision for each of the memories :ids, with the present values of the columns :fields, before they change.
-- :reasons and :undoes are JSON objects by id.
insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
select :namespace::uuid, m.id, m.revision, :action::text, :author::text, :agent::text, :now::timestamptz,
    :reasons::jsonb ->> m.id::text, (:undoes::jsonb ->> m.id::text)::integer,
    (select coalesce(jsonb_object_agg(held.key, held.value), '{}') from jsonb_each(
-- include changeable
    ) as held where held.key = any(:fields::text[]))
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
