-- Make a namespace unless it is there, and learn the languages its new memories are in. The row comes back either way.
-- One that is there and has nothing to learn is held with others, which keeps out who changes memories (namespaces_hold)
-- and nobody else: `on conflict do update` would lock it alone to the end of the transaction even where its condition
-- does not hold, and stores would queue behind one another on this row.
with known as materialized (
    select id, language from namespaces
    where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null
        and languages @> :languages::text[]
    for key share
),
made as (
    insert into namespaces (id, name, language, languages, created_at, created_by)
    select :id::uuid, :name::text, :language::text, array[:language::text] || :languages::text[], :now::timestamptz,
        :author::text
    where not exists (select from known)
    on conflict (lower(name collate "C")) where deleted_at is null do update
        set languages = array(select distinct unnest(namespaces.languages || :languages::text[]) order by 1)
        where not namespaces.languages @> :languages::text[]
    returning id, language
)
select id, language, true as written from made
union all
select id, language, false from known
limit 1
