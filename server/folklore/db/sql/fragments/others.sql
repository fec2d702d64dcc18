-- All namespaces but :namespaces, in place of these.
others as materialized (
    select array(select id from namespaces where deleted_at is null and id <> all(:namespaces::uuid[])) as ids
),
