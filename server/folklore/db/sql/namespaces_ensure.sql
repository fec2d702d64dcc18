-- Make a namespace unless it is there, and learn the languages its new memories are in. The row comes back either way.
-- The update is skipped when there is nothing to learn, so that stores do not queue behind one another on this row.
with made as (
    insert into namespaces (id, name, language, languages, created_at, created_by)
    values (:id::uuid, :name::text, :language::text, array[:language::text] || :languages::text[], :now::timestamptz,
        :author::text)
    on conflict (lower(name)) do update
        set languages = array(select distinct unnest(namespaces.languages || :languages::text[]) order by 1)
        where not namespaces.languages @> :languages::text[]
    returning id, language
)
select id, language, true as written from made
union all
select id, language, false from namespaces where lower(name) = lower(:name::text)
order by written desc
limit 1
