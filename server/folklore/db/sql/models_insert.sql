insert into models (id, provider, name, dimensions, created_at)
values (:id::uuid, :provider::text, :name::text, :dimensions::integer, :now::timestamptz)
on conflict (id) do nothing
