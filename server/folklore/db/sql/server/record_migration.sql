-- Record that a migration was applied, within its transaction.
insert into folklore_migrations (name, checksum, applied_at) values (:name::text, :checksum::text, :now::timestamptz)
