-- Delete the rows of external tokens that expired before :before. Tokens of this server stay, to be listed.
delete from tokens where issuer is not null and expires_at < :before::timestamptz returning id
