-- Release those of :keys whose memory is forgotten; see folklore_release_keys.
select folklore_release_keys(:namespace::uuid, :keys::text[])
