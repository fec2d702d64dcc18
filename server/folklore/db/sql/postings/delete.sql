-- Delete the postings of the memories :ids; see folklore_delete_postings.
select folklore_delete_postings(:namespace::uuid, :ids::uuid[])
