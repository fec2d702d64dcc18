-- Delete memories; see folklore_delete_memories.
select deleted.id from folklore_delete_memories(:namespace::uuid, :ids::uuid[]) as deleted (id)
