-- The principal of this name, created if it is new; an existing one keeps its spelling.
with made as (
    insert into principals (id, name) values (:id::uuid, :name::text)
    on conflict (lower(name collate "C")) do nothing
    returning id, name
)
select id, name from made
union all
select id, name from principals where lower(name collate "C") = lower(:name::text collate "C")
limit 1
