-- Save a preset, in the place of one with the same name.
insert into presets (name, base, numbers, author, created_at)
values (:name::text, :base::text, :numbers::jsonb, :author::text, :now::timestamptz)
on conflict (name) do update
set base = excluded.base, numbers = excluded.numbers, author = excluded.author, created_at = excluded.created_at
