-- Delete the relations of the memory :id that :author wrote at :at; see folklore_delete_relations.
select deleted.from_id, deleted.type, deleted.to_id
from folklore_delete_relations(:namespace::uuid, (
    select coalesce(jsonb_agg(jsonb_build_object('from_id', r.from_id, 'type', r.type, 'to_id', r.to_id)), '[]')
    from (
        select f.from_id, f.type, f.to_id from relations f
        where f.namespace_id = :namespace::uuid and f.from_id = :id::uuid and f.author = :author::text
            and f.created_at = :at::timestamptz
        union
        select t.from_id, t.type, t.to_id from relations t
        where t.namespace_id = :namespace::uuid and t.to_id = :id::uuid and t.author = :author::text
            and t.created_at = :at::timestamptz
    ) r
)) as deleted
