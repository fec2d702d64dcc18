-- Delete the embeddings of the memories :ids in every model; see folklore_delete_embeddings.
select folklore_delete_embeddings(:namespace::uuid, :ids::uuid[])
