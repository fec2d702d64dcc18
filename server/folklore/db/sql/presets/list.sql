-- All saved presets, by name.
select name, base, numbers, author, created_at
from presets
order by name
