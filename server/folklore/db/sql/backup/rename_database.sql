-- The command that gives a database another name.
select format('alter database %I rename to %I', :old::text, :new::text) as command
