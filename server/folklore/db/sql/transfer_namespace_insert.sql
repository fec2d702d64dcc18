-- A namespace as another database knew it; one that is here already stays as it is.
insert into namespaces (id, name, description, language, languages, created_at, created_by)
values (:id::uuid, :name::text, :description::text, :language::text, array[:language::text], :created_at::timestamptz,
    :created_by::text)
on conflict (lower(name collate "C")) where deleted_at is null do nothing
returning id
