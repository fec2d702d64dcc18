insert into folklore_migrations (name, checksum, applied_at) values (:name::text, :checksum::text, :now::timestamptz)
