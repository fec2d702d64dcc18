-- Create a namespace if its name is new, else add the languages of its new memories; those that were :detected are not
-- added to a namespace without a language ('simple'). Returns the row; none if another
-- transaction created the namespace after this statement began, and then the next attempt finds it. An existing
-- namespace with nothing to add is locked in shared mode, which excludes changes of memories (namespaces/lock) and
-- nothing else: `on conflict do update` would lock it exclusively until the transaction ends, even if its condition
-- does not hold, and stores would queue for this row. It would also count as an insert for row-level security, which
-- lets no token insert a namespace, while a writer's token may change the languages of one.
with known as materialized (
    select id, language from namespaces
    where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null
        and languages @> :languages::text[] and (language = 'simple' or languages @> :detected::text[])
    for key share
),
learned as (
    update namespaces set languages = array(select distinct unnest(
        languages || :languages::text[] || case when language <> 'simple' then :detected::text[] end) order by 1)
    where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null
        and not (languages @> :languages::text[] and (language = 'simple' or languages @> :detected::text[]))
    returning id, language
),
made as (
    insert into namespaces (id, name, language, languages, created_at, created_by)
    select :id::uuid, :name::text, :language::text, array(
            select distinct unnest(array[:language::text] || :languages::text[] || :detected::text[]) order by 1),
        :now::timestamptz, :author::text
    where not exists (
        select from namespaces where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null)
    on conflict (lower(name collate "C")) where deleted_at is null do nothing
    returning id, language
)
select * from known union all select * from learned union all select * from made limit 1
