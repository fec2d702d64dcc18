-- Creates a namespace with given properties; one that exists stays as it is and is not returned.
insert into namespaces (id, name, description, language, languages, shared, created_at, created_by)
values (:id::uuid, :name::text, :description::text, :language::text, array[:language::text], :shared::text,
    :created_at::timestamptz, :created_by::text)
on conflict (lower(name collate "C")) where deleted_at is null do nothing
returning id
