-- A cursor over the memories of one namespace, so that no reader needs room for all of them.
declare folklore_transfer no scroll cursor for
-- include transfer_entries
