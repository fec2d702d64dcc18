-- The first statement of an export: all of it sees one moment, however long its reader takes.
set local transaction isolation level repeatable read, read only
