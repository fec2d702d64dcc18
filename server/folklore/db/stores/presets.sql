-- name: delete. Delete a preset; returns it if there was one.
delete from presets where name = :name::text returning name

-- name: list. All saved presets, by name.
select name, base, numbers, author, created_at from presets order by name

-- name: save. Save a preset, in the place of one with the same name.
insert into presets (name, base, numbers, author, created_at)
values (:name::text, :base::text, :numbers::jsonb, :author::text, :now::timestamptz)
on conflict (name) do update
set base = excluded.base, numbers = excluded.numbers, author = excluded.author, created_at = excluded.created_at
