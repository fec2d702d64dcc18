-- The commands that make the settings of `alter system` on another server.
select s.name, format('alter system set %I = %L', s.name, s.setting) as command
from pg_file_settings s
where s.sourcefile ~ '/postgresql\.auto\.conf$'
order by s.seqno
