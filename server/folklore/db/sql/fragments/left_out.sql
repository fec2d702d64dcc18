-- In place of :namespaces, all but these and deleted ones. A list of thousands would be sorted for each table.
left_out as materialized (
    select array(select id from namespaces where deleted_at is not null union all select unnest(:namespaces::uuid[])) as ids
),
