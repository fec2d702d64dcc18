-- A cursor over the memories of one namespace, so that an export needs constant memory.
declare folklore_memories no scroll cursor for
-- include transfer/memories
